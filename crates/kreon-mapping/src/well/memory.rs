//! Anonymous memory from the kernel.

use std::ops::Range;
use std::ptr::NonNull;

use kreon_base::Result;

/// Zeroed memory of its own, mapped at `start` for `len_bytes` until dropped.
pub(super) struct KernelMemory {
    start: NonNull<u8>,
    #[cfg_attr(
        miri,
        expect(dead_code, reason = "the kernel's ranges are checked against it")
    )]
    len_bytes: usize,
    /// Holds the memory; last to go.
    _reservation: AddressRange,
}

// SAFETY: the memory belongs to this value alone and has no thread affinity. `KernelMemory` itself never
// touches the bytes after construction; those who do, through `start`, prove their own accesses.
unsafe impl Send for KernelMemory {}
// SAFETY: as above; `&KernelMemory` gives out nothing but the address, and `forget_range` is a system call.
unsafe impl Sync for KernelMemory {}

impl KernelMemory {
    /// Memory that is allocated from the start: no first touch costs a fault later or can
    /// fail. `huge` asks for 2 MiB pages: reserved ones if the system has enough, else transparent
    /// ones, else 4 KiB.
    pub fn populated(len_bytes: usize, huge: bool) -> Result<Self> {
        let memory = Self::populated_sparsely(len_bytes, huge)?;
        memory.populate()?;
        Ok(memory)
    }

    /// The first byte, aligned to at least 4 KiB.
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }
}

#[cfg(not(miri))]
use kernel::AddressRange;

#[cfg(not(miri))]
mod kernel {
    use std::ffi::c_void;

    use super::*;
    use kreon_base::{Error, PAGE_BYTES};
    use rustix::io::Errno;
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    use rustix::mm::{Advice, madvise};
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    /// Length of a huge page.
    const HUGE_PAGE_BYTES: usize = 2 << 20;

    /// Bytes requested from the kernel at once. While it looks for pages, no other thread of the process can start, or get
    /// large memory.
    const POPULATE_BYTES: usize = 16 << 20;

    /// Address space for which no memory is put aside. Systems without such a flag put none aside by themselves.
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    const UNRESERVED: MapFlags = MapFlags::NORESERVE;
    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    const UNRESERVED: MapFlags = MapFlags::empty();

    /// Advice that changes cost and never content. Systems other than Linux are not given any.
    #[derive(Clone, Copy)]
    enum Hint {
        /// Pages of 4 KiB.
        Small,
        /// Pages of 2 MiB.
        Huge,
        /// Children of a fork do not get the memory.
        NotForked,
        /// The memory may go; it reads as zeroes then.
        Forgotten,
    }

    /// A range from `mmap`, unmapped when dropped.
    pub(super) struct AddressRange {
        address: *mut c_void,
        len_bytes: usize,
    }

    impl AddressRange {
        fn new(len_bytes: usize, flags: MapFlags) -> Result<Self, Errno> {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            let flags = MapFlags::PRIVATE | flags;
            // SAFETY: with a null hint and no MAP_FIXED the kernel picks a range that nothing uses.
            let address =
                unsafe { mmap_anonymous(std::ptr::null_mut(), len_bytes, protection, flags) }?;
            Ok(Self { address, len_bytes })
        }

        /// A range of reserved huge pages, if the system has enough of them.
        #[cfg(all(target_os = "linux", not(feature = "portable")))]
        fn of_huge_pages(len_bytes: usize) -> Option<Self> {
            Self::new(len_bytes, MapFlags::HUGETLB).ok()
        }

        #[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
        fn of_huge_pages(_: usize) -> Option<Self> {
            None
        }
    }

    impl Drop for AddressRange {
        fn drop(&mut self) {
            // SAFETY: the range is exactly what `mmap` gave; its owner, `KernelMemory`, is being dropped,
            // so by the borrow rules no reference into it lives.
            let unmapped = unsafe { munmap(self.address, self.len_bytes) };
            debug_assert!(unmapped.is_ok(), "munmap of an own range");
        }
    }

    impl KernelMemory {
        /// Memory that is allocated where it is touched, a 4 KiB page at a time.
        pub fn sparse(len_bytes: usize) -> Result<Self> {
            let len_bytes = len_bytes.max(1).next_multiple_of(PAGE_BYTES);
            let reservation = AddressRange::new(len_bytes, UNRESERVED)
                .map_err(|errno| refused(len_bytes, errno))?;
            let memory = Self::within(reservation, PAGE_BYTES, len_bytes)?;
            // With transparent huge pages a single touched word would take 2 MiB.
            memory.hint(0..len_bytes, Hint::Small);
            memory.hint(0..len_bytes, Hint::NotForked);
            Ok(memory)
        }

        pub(super) fn populated_sparsely(len_bytes: usize, huge: bool) -> Result<Self> {
            let len_bytes = len_bytes.max(1).next_multiple_of(PAGE_BYTES);
            let huge_bytes = len_bytes - len_bytes % HUGE_PAGE_BYTES;
            let reserved = (huge && huge_bytes == len_bytes)
                .then(|| AddressRange::of_huge_pages(len_bytes))
                .flatten();
            let memory = match reserved {
                Some(reservation) => Self::within(reservation, PAGE_BYTES, len_bytes)?,
                None => Self::transparent(len_bytes, if huge { huge_bytes } else { 0 })?,
            };
            // A child of fork would otherwise share the frames, and a device read that is under way
            // could end up in the child's copy.
            memory.hint(0..len_bytes, Hint::NotForked);
            Ok(memory)
        }

        /// Memory of which the first `huge_bytes` may come in 2 MiB pages.
        fn transparent(len_bytes: usize, huge_bytes: usize) -> Result<Self> {
            // One huge page more than needed, so that an aligned start fits; it is never touched.
            let reservation = AddressRange::new(len_bytes + HUGE_PAGE_BYTES, MapFlags::empty())
                .map_err(|errno| refused(len_bytes, errno))?;
            let memory = Self::within(reservation, HUGE_PAGE_BYTES, len_bytes)?;
            memory.hint(0..huge_bytes, Hint::Huge);
            memory.hint(huge_bytes..len_bytes, Hint::Small);
            Ok(memory)
        }

        /// The aligned part of a reservation.
        fn within(reservation: AddressRange, alignment: usize, len_bytes: usize) -> Result<Self> {
            let address = reservation.address.cast::<u8>();
            let skip = address.align_offset(alignment);
            // `skip` is below `alignment`, and the reservation has that much to spare.
            match NonNull::new(address.wrapping_add(skip)) {
                Some(start) if skip + len_bytes <= reservation.len_bytes => Ok(Self {
                    start,
                    len_bytes,
                    _reservation: reservation,
                }),
                _ => Err(refused(len_bytes, Errno::NOMEM)),
            }
        }

        /// Gives advice; an older kernel may refuse it.
        #[cfg(all(target_os = "linux", not(feature = "portable")))]
        fn hint(&self, range: Range<usize>, hint: Hint) {
            let advice = match hint {
                Hint::Small => Advice::LinuxNoHugepage,
                Hint::Huge => Advice::LinuxHugepage,
                Hint::NotForked => Advice::LinuxDontFork,
                Hint::Forgotten => Advice::LinuxDontNeed,
            };
            if !range.is_empty() {
                let _ = self.advise(range, advice);
            }
        }

        #[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
        fn hint(&self, range: Range<usize>, hint: Hint) {
            let _ = (range, hint);
        }

        #[cfg(all(target_os = "linux", not(feature = "portable")))]
        fn advise(&self, range: Range<usize>, advice: Advice) -> Result<(), Errno> {
            assert!(range.start <= range.end && range.end <= self.len_bytes);
            let address = self
                .start
                .as_ptr()
                .wrapping_add(range.start)
                .cast::<c_void>();
            // SAFETY: the range lies in our own mapping (asserted). The advice given in this file
            // either leaves content alone or is DONTNEED on behalf of `forget_range`, whose caller
            // owns the bytes.
            unsafe { madvise(address, range.len(), advice) }
        }

        pub(super) fn populate(&self) -> Result<()> {
            for start in (0..self.len_bytes).step_by(POPULATE_BYTES) {
                self.populate_range(start..self.len_bytes.min(start + POPULATE_BYTES))?;
            }
            Ok(())
        }

        #[cfg(all(target_os = "linux", not(feature = "portable")))]
        fn populate_range(&self, range: Range<usize>) -> Result<()> {
            match self.advise(range.clone(), Advice::LinuxPopulateWrite) {
                Ok(()) => {}
                // Kernels before 5.14 have no such advice.
                Err(Errno::INVAL) => self.touch(range),
                Err(errno) => return Err(refused(self.len_bytes, errno)),
            }
            Ok(())
        }

        #[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
        fn populate_range(&self, range: Range<usize>) -> Result<()> {
            self.touch(range);
            Ok(())
        }

        /// Writes zeroes into a range of zeroes, so that the kernel allocates it.
        fn touch(&self, range: Range<usize>) {
            assert!(range.start <= range.end && range.end <= self.len_bytes);
            let bytes = self.start.as_ptr().wrapping_add(range.start);
            // SAFETY: the range lies in our own fresh mapping (asserted), and nobody else knows of it yet.
            unsafe { bytes.write_bytes(0, range.len()) };
        }

        /// Gives the memory of a range of zeroes back, where the system takes it; it reads as zero from then on. For
        /// ranges whose every access, here and on other threads, is atomic or ordered against this call.
        pub fn forget_range(&self, range: Range<usize>) {
            self.hint(range, Hint::Forgotten);
        }
    }

    fn refused(len_bytes: usize, errno: Errno) -> Error {
        Error::io(format!("reserve {len_bytes} bytes of memory"), errno.into())
    }
}

#[cfg(miri)]
use heap::AddressRange;

/// Miri knows no `mmap`: the heap stands in for it.
#[cfg(miri)]
mod heap {
    use super::*;
    use std::alloc::{Layout, alloc_zeroed, dealloc};

    pub(super) struct AddressRange(NonNull<u8>, Layout);

    impl KernelMemory {
        pub fn sparse(len_bytes: usize) -> Result<Self> {
            Self::populated_sparsely(len_bytes, false)
        }

        pub(super) fn populated_sparsely(len_bytes: usize, _huge: bool) -> Result<Self> {
            let layout = Layout::from_size_align(len_bytes.max(1), 4096).unwrap();
            // SAFETY: the size is not zero.
            let start = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
            Ok(Self {
                start,
                len_bytes,
                _reservation: AddressRange(start, layout),
            })
        }

        pub(super) fn populate(&self) -> Result<()> {
            Ok(())
        }

        /// The caller's entries are zero already.
        pub fn forget_range(&self, _range: Range<usize>) {}
    }

    impl Drop for AddressRange {
        fn drop(&mut self) {
            // SAFETY: from `alloc_zeroed` with this layout, freed once.
            unsafe { dealloc(self.0.as_ptr(), self.1) }
        }
    }
}
