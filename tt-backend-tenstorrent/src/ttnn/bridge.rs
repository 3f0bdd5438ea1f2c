//! The bridge to what only the ttnn driver has. All that both drivers do crosses [`crate::bridge`].
#![expect(unsafe_code, reason = "cxx declares foreign functions in an unsafe block")]
#![expect(unreachable_pub, reason = "cxx makes every item of a bridge public")]

#[cxx::bridge(namespace = "tt")]
pub(crate) mod ffi {
    /// How the driver is opened; see `Levers` in `cpp/ttnn/emit.hpp` for the last six.
    #[derive(Debug, Clone, Copy)]
    struct TtnnOptions {
        device_id: u32,
        /// The library's own mock of a card, which runs all of the host's part and no kernel.
        mock: bool,
        /// Fewer fidelity phases where the model can afford it.
        performance: bool,
        /// Positions that rotary tables hold where no cache says how many.
        context: u32,
        element_by_element: bool,
        fuse: bool,
        preallocate: bool,
        keep_plans: bool,
        keep_handles: bool,
        whole_lists: bool,
        round_trips: bool,
    }

    /// Calls of one kind and the host's time in them.
    #[derive(Debug, Clone)]
    struct CallTime {
        kind: String,
        calls: u64,
        nanos: u64,
    }

    /// Bytes of device memory, as the library's allocator counts them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct MemoryFigures {
        allocated: u64,
        free: u64,
        largest_free: u64,
    }

    unsafe extern "C++" {
        include!("tt-backend-tenstorrent/cpp/ttnn/open.hpp");

        type Driver = crate::bridge::ffi::Driver;

        fn open_ttnn(options: &TtnnOptions) -> Result<UniquePtr<Driver>>;
        fn ttnn_calls(driver: &Driver) -> Vec<CallTime>;
        fn ttnn_memory(driver: &Driver) -> Result<MemoryFigures>;
        fn ttnn_trim(driver: Pin<&mut Driver>) -> Result<()>;
    }
}
