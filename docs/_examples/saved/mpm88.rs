// Runs a saved simulation on the CPU from Rust: mpm88 FILE STEPS prints the coverage of the picture.
use std::ffi::{c_char, c_int, c_void, CStr, CString};

#[repr(C)]
struct Graph {
    _private: [u8; 0],
}

extern "C" {
    fn qpg_open(path: *const c_char, target: *const c_char, error: *mut c_char, error_size: usize) -> *mut Graph;
    fn qpg_bind(graph: *mut Graph, name: *const c_char, pointer: *mut c_void, shape: *const i64, rank: c_int) -> c_int;
    fn qpg_run(graph: *mut Graph, stream: *mut c_void) -> c_int;
    fn qpg_error(graph: *const Graph) -> *const c_char;
    fn qpg_close(graph: *mut Graph);
}

fn text(at: *const c_char) -> String {
    unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
}

fn simulate(path: &str, steps: usize) -> Result<Vec<f32>, String> {
    let shape = [250i64, 400];
    let mut picture = vec![0f32; 250 * 400 * 4];
    let mut error = [0 as c_char; 512];
    let path = CString::new(path).map_err(|e| e.to_string())?;
    unsafe {
        let graph = qpg_open(path.as_ptr(), c"cpu".as_ptr(), error.as_mut_ptr(), error.len());
        if graph.is_null() {
            return Err(text(error.as_ptr()));
        }
        let bound = qpg_bind(graph, c"picture".as_ptr(), picture.as_mut_ptr().cast(), shape.as_ptr(), 2);
        let failed = bound != 0 || (0..steps).any(|_| qpg_run(graph, std::ptr::null_mut()) != 0);
        let message = text(qpg_error(graph));
        qpg_close(graph);
        if failed {
            return Err(message);
        }
    }
    Ok(picture)
}

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().collect();
    let picture = simulate(&arguments[1], arguments[2].parse().map_err(|_| "STEPS is a number")?)?;
    println!("{:.4}", picture.iter().skip(3).step_by(4).sum::<f32>());
    Ok(())
}
