define protected amdgpu_kernel void @saxpy(ptr addrspace(1) noalias %x, ptr addrspace(1) noalias %y, float %a, i32 %n) #0 {
entry:
  %tid = call i32 @llvm.amdgcn.workitem.id.x()
  %wg = call i32 @llvm.amdgcn.workgroup.id.x()
  %b = shl i32 %wg, 8
  %i = or disjoint i32 %b, %tid
  %in = icmp ult i32 %i, %n
  br i1 %in, label %body, label %exit
body:
  %o32 = shl nuw i32 %i, 2
  %o = zext i32 %o32 to i64
  %px = getelementptr inbounds i8, ptr addrspace(1) %x, i64 %o
  %py = getelementptr inbounds i8, ptr addrspace(1) %y, i64 %o
  %vx = load float, ptr addrspace(1) %px, align 4
  %vy = load float, ptr addrspace(1) %py, align 4
  %p = fmul float %a, %vx
  %r = fadd float %p, %vy
  store float %r, ptr addrspace(1) %py, align 4
  br label %exit
exit:
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
attributes #0 = { "amdgpu-flat-work-group-size"="256,256" "uniform-work-group-size"="true" }
