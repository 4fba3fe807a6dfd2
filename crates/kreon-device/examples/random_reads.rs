//! What the device itself can do: 4 KiB reads at random places of a file, with `O_DIRECT`, at a depth.
//!
//! `cargo run --release -p kreon-device --example random_reads -- FILE [SECONDS] [DEPTH..]`

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};
use kreon_device::AlignedBuf;
use rustix::time::{ClockId, clock_gettime};

const PAGE: usize = 4096;

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn measure(file: &File, depth: usize, time: Duration) -> std::io::Result<()> {
    let pages = file.metadata()?.len() / PAGE as u64;
    let mut ring: IoUring = IoUring::builder()
        .setup_coop_taskrun()
        .build(depth as u32)?;
    let mut buffers: Vec<_> = (0..depth).map(|_| AlignedBuf::new(PAGE)).collect();
    let mut idle: Vec<usize> = (0..depth).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let (mut reads, start, cpu_start) = (0u64, Instant::now(), cpu());
    loop {
        let more = start.elapsed() < time;
        while more && let Some(slot) = idle.pop() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let file = types::Fd(file.as_raw_fd());
            let entry = opcode::Read::new(file, buffers[slot].as_mut_ptr(), PAGE as u32)
                .offset(random % pages * PAGE as u64)
                .build()
                .user_data(slot as u64);
            // SAFETY: the buffer lives until the loop has seen every completion, and is not touched.
            unsafe { ring.submission().push(&entry) }.expect("as many entries as buffers");
        }
        let in_flight = depth - idle.len();
        if in_flight == 0 {
            break;
        }
        ring.submit_and_wait(1)?;
        for completion in ring.completion() {
            assert_eq!(completion.result(), PAGE as i32, "a read failed");
            idle.push(completion.user_data() as usize);
            reads += 1;
        }
    }
    let rate = reads as f64 / start.elapsed().as_secs_f64();
    let cpu_us = (cpu() - cpu_start).as_secs_f64() * 1e6 / reads as f64;
    println!("raw depth {depth:4}: {rate:9.0} reads/s, {cpu_us:6.2} CPU us a read");
    Ok(())
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a file");
    let seconds = arguments
        .next()
        .map_or(2.0, |s| s.parse().expect("seconds"));
    let mut depths: Vec<usize> = arguments.map(|d| d.parse().expect("a depth")).collect();
    if depths.is_empty() {
        depths = vec![1, 32, 64];
    }
    let file = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
        .open(path)?;
    for depth in depths {
        measure(&file, depth, Duration::from_secs_f64(seconds))?;
    }
    Ok(())
}
