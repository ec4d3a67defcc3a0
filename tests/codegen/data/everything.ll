; All that a linker can meet in one object: four kernels, static and dynamic LDS, tables in constant memory, functions
; that are called, globals reached through the GOT and without it, a pointer in data, zero-initialised memory.
@tile = internal addrspace(3) global [256 x float] poison, align 16
@dynamic = external addrspace(3) global [0 x float], align 16
@squares = internal addrspace(4) constant [8 x i32] [i32 0, i32 1, i32 4, i32 9, i32 16, i32 25, i32 36, i32 49], align 16
@weights = internal addrspace(4) constant [4 x float] [float 1.0, float 2.0, float 4.0, float 8.0], align 4
@counter = addrspace(1) global i32 7, align 4
@hidden_counter = internal addrspace(1) global i32 0, align 4
@late = hidden addrspace(1) global i32 3, align 4
@pointer = addrspace(1) global ptr addrspace(1) getelementptr (i8, ptr addrspace(1) @scratchpad, i64 8), align 8
@scratchpad = addrspace(1) global [64 x i32] zeroinitializer, align 16

define internal i32 @square(i32 %i) noinline {
  %k = and i32 %i, 7
  %p = getelementptr inbounds [8 x i32], ptr addrspace(4) @squares, i32 0, i32 %k
  %v = load i32, ptr addrspace(4) %p, align 4
  ret i32 %v
}

define hidden i32 @twice(i32 %i) noinline {
  %a = call i32 @square(i32 %i)
  %b = shl i32 %a, 1
  ret i32 %b
}

define protected amdgpu_kernel void @tables(ptr addrspace(1) %out, i32 %n) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %s = call i32 @twice(i32 %i)
  %k = and i32 %s, 3
  %wp = getelementptr inbounds [4 x float], ptr addrspace(4) @weights, i32 0, i32 %k
  %w = load float, ptr addrspace(4) %wp, align 4
  %o = getelementptr inbounds float, ptr addrspace(1) %out, i32 %i
  store float %w, ptr addrspace(1) %o, align 4
  ret void
}

define amdgpu_kernel void @exchange(ptr addrspace(1) %data) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr inbounds float, ptr addrspace(1) %data, i32 %i
  %v = load float, ptr addrspace(1) %p, align 4
  %l = getelementptr inbounds [256 x float], ptr addrspace(3) @tile, i32 0, i32 %i
  store float %v, ptr addrspace(3) %l, align 4
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %j = xor i32 %i, 255
  %m = getelementptr inbounds [256 x float], ptr addrspace(3) @tile, i32 0, i32 %j
  %u = load float, ptr addrspace(3) %m, align 4
  store float %u, ptr addrspace(1) %p, align 4
  ret void
}

define amdgpu_kernel void @count(ptr addrspace(1) %out) #0 {
  %old = atomicrmw add ptr addrspace(1) @counter, i32 1 syncscope("agent") monotonic, align 4
  %mid = atomicrmw add ptr addrspace(1) @hidden_counter, i32 %old syncscope("agent") monotonic, align 4
  %where = load ptr addrspace(1), ptr addrspace(1) @pointer, align 8
  store i32 %mid, ptr addrspace(1) %where, align 4
  store i32 %old, ptr addrspace(1) %out, align 4
  store i32 %mid, ptr addrspace(1) @late, align 4
  ret void
}

define amdgpu_kernel void @"a.b$c-d<1>"(ptr addrspace(1) %data) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %l = getelementptr inbounds float, ptr addrspace(3) @dynamic, i32 %i
  store volatile float 1.0, ptr addrspace(3) %l, align 4
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
attributes #0 = { "amdgpu-flat-work-group-size"="256,256" "uniform-work-group-size"="true" }
