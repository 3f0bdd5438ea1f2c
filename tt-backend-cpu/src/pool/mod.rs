//! A small thread pool for work that comes in short bursts.
//!
//! A decode step is a few hundred kernels of 10 to 1000 microseconds, one after the other.
//! Waking a parked thread costs about as much as the small ones of them, so a worker that has
//! run out of work first spins for a while and parks only if nothing comes.
//!
//! Each thread has a share of the tasks, next to each other, and takes them one by one from the
//! front; a thread whose share is done takes from the end of another's. So a thread walks through
//! memory in one direction, which is what memory is fast at, and one that the system has taken off
//! its core holds nobody up. A task must not care where or when it runs; kernels divide their work
//! between independent outputs only, and so give the same bits for every number of threads.

mod ahead;

use std::any::Any;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ahead::{Ahead, Fetched};

/// How long a thread looks for work before it parks: longer than any serial stretch between two
/// kernels of a forward pass. To be woken up takes some tens of microseconds, and on a machine that
/// others use too it takes as long as they like.
const IDLE: Duration = Duration::from_micros(200);

/// How long the caller looks for the end of the last tasks before it parks: longer than a task
/// takes, unless the system has taken the thread off its core.
const FINISHING: Duration = Duration::from_millis(1);

/// Looks between two looks at the clock.
const LOOKS: u32 = 32;

/// What a task should cost at least, in the unit of [`Pool::block`]: several times the price
/// of handing it out.
const TASK_COST: usize = 20_000;

/// Tasks a thread, at most. More than one, so that threads that run at different speeds
/// finish together.
const TASKS_PER_THREAD: usize = 16;

type Task<'a> = dyn Fn(usize) + Sync + 'a;

/// The work of one [`Pool::run`].
#[derive(Clone, Copy)]
struct Job {
    task: &'static Task<'static>,
    count: usize,
}

/// What the threads agree on under the lock.
struct Slot {
    /// Raised with every job, so that a worker joins each job at most once.
    epoch: u64,
    /// The job that can be joined.
    job: Option<Job>,
    /// Workers that wait on `Shared::work`.
    parked: usize,
    /// Whether the caller waits on `Shared::done`.
    waiting: bool,
    /// The pool is being dropped.
    closing: bool,
    /// The first panic of a task of this job.
    panic: Option<Box<dyn Any + Send>>,
}

struct Shared {
    slot: Mutex<Slot>,
    work: Condvar,
    done: Condvar,
    /// `Slot::epoch`, to spin on without the lock.
    epoch: AtomicU64,
    /// The tasks of each thread that nobody has taken yet.
    shares: Box<[Share]>,
    /// Workers that have joined the job. Written under the lock, spun on without it.
    active: AtomicUsize,
    /// What to fetch meanwhile.
    ahead: Ahead,
}

/// Tasks `first .. end`, packed into one number so that both ends can be taken from. On a line of its
/// own: its owner writes to it at every task.
#[repr(align(64))]
struct Share(AtomicU64);

impl Share {
    fn set(&self, first: u32, end: u32) {
        self.0.store(u64::from(first) << 32 | u64::from(end), Ordering::Relaxed);
    }

    /// Takes a task: the owner the first, anybody else the last.
    fn take(&self, owner: bool) -> Option<usize> {
        let ends = |packed: u64| ((packed >> 32) as u32, packed as u32);
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |packed| {
            let (first, end) = ends(packed);
            (first < end).then(|| if owner { packed + (1 << 32) } else { packed - 1 })
        });
        let (first, end) = ends(taken.ok()?);
        Some(if owner { first as usize } else { end as usize - 1 })
    }
}

/// A fixed number of threads that share the tasks of one kernel at a time.
///
/// ```
/// use tt_backend_cpu::pool::Pool;
///
/// let pool = Pool::new(2);
/// let mut squares = [0usize; 100];
/// pool.for_each(squares.chunks_mut(10), |part, chunk| {
///     for (i, square) in chunk.iter_mut().enumerate() {
///         *square = (part * 10 + i) * (part * 10 + i);
///     }
/// });
/// assert_eq!(squares[99], 99 * 99);
/// ```
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held for the length of a job.
    turn: Mutex<()>,
    /// What a task should cost at least.
    task_cost: usize,
}

impl Pool {
    /// A pool of `threads` threads, of which the caller is one. With one thread (or none)
    /// everything runs inline. If the system refuses a thread, the pool is that much smaller.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared {
            slot: Mutex::new(Slot {
                epoch: 0,
                job: None,
                parked: 0,
                waiting: false,
                closing: false,
                panic: None,
            }),
            work: Condvar::new(),
            done: Condvar::new(),
            epoch: AtomicU64::new(0),
            shares: (0..threads.max(1)).map(|_| Share(AtomicU64::new(0))).collect(),
            active: AtomicUsize::new(0),
            ahead: Ahead::default(),
        });
        let workers = (1..threads)
            .map_while(|index| {
                let shared = Arc::clone(&shared);
                thread::Builder::new()
                    .name(format!("cpu-worker-{index}"))
                    .spawn(move || shared.serve(index))
                    .ok()
            })
            .collect();
        Self { shared, workers, turn: Mutex::new(()), task_cost: TASK_COST }
    }

    /// A pool of as many threads as the system says it can run at once.
    #[must_use]
    pub fn with_all_cores() -> Self {
        Self::new(thread::available_parallelism().map_or(1, usize::from))
    }

    /// A pool that shares even work too small to be worth it. For tests.
    #[must_use]
    pub fn eager(threads: usize) -> Self {
        let mut pool = Self::new(threads);
        pool.task_cost = 1;
        pool
    }

    /// The number of threads, the caller included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `task(0)` to `task(count - 1)`, each once, in any order and on any thread, and
    /// returns when all have returned.
    ///
    /// Runs inline if there is one task or one thread, or more than 2^32 tasks, or if the pool is busy:
    /// with another thread's job, or because a task itself calls `run`.
    ///
    /// # Panics
    ///
    /// With the first panic of a task. Tasks not yet begun are then left out.
    pub fn run(&self, count: usize, task: impl Fn(usize) + Sync) {
        let shared = count > 1 && u32::try_from(count).is_ok() && !self.workers.is_empty();
        let turn = if shared { self.turn.try_lock().ok() } else { None };
        if turn.is_none() {
            (0..count).for_each(task);
            return;
        }
        let borrowed: &Task<'_> = &task;
        // SAFETY: only the lifetime changes. The reference is used by this call and by workers
        // that take it from the slot; `finish` empties the slot and returns only when every
        // worker that took it has let go of it, and nothing between here and there unwinds
        // (`work_through` catches the panics of tasks, and a poisoned lock is entered). So the
        // reference is never used after `task` goes out of scope.
        let task = unsafe { std::mem::transmute::<&Task<'_>, &'static Task<'static>>(borrowed) };
        let job = Job { task, count };
        self.shared.publish(job);
        self.shared.work_through(job, 0);
        let panic = self.shared.finish();
        drop(turn);
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }

    /// Gives each part to a task of its own: `body(index, part)`. The parts of an output are
    /// usually disjoint mutable slices, so the borrow checker sees that no two tasks write to
    /// the same place.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn for_each<P: Send>(&self, parts: impl IntoIterator<Item = P>, body: impl Fn(usize, P) + Sync) {
        if self.workers.is_empty() {
            for (index, part) in parts.into_iter().enumerate() {
                body(index, part);
            }
            return;
        }
        // A lock a part, taken once and never contended, is what it costs to hand a `&mut` to
        // an unknown thread without unsafe code.
        let parts: Vec<Mutex<Option<P>>> = parts.into_iter().map(|p| Mutex::new(Some(p))).collect();
        self.run(parts.len(), |index| {
            let part = lock(&parts[index]).take();
            if let Some(part) = part {
                body(index, part);
            }
        });
    }

    /// Says that the tasks to come read `operand`, each thread a part of it, and nothing of it twice.
    /// Threads with nothing to do then fetch from the operand that came after it the last time.
    pub fn reading(&self, operand: &[u8]) {
        if !self.workers.is_empty() {
            self.shared.ahead.reading(operand);
        }
    }

    /// How many of `units` equal units of work to put in one task, if a unit takes about
    /// `cost` nanoseconds. At least one. All of them if that is too little work to share, or
    /// if there is one thread.
    #[must_use]
    pub fn block(&self, units: usize, cost: usize) -> usize {
        if self.workers.is_empty() {
            return units.max(1);
        }
        let threads = self.threads();
        let most = (units.saturating_mul(cost.max(1)) / self.task_cost).clamp(1, threads * TASKS_PER_THREAD);
        // As many tasks for each thread.
        let tasks = if most < threads { most } else { most / threads * threads };
        units.div_ceil(tasks).max(1)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut slot = lock(&self.shared.slot);
        slot.closing = true;
        slot.epoch += 1;
        self.shared.epoch.store(slot.epoch, Ordering::Release);
        drop(slot);
        self.shared.work.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of its tasks; it has nothing of its own to report.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn publish(&self, job: Job) {
        let mut slot = lock(&self.slot);
        let bound = |thread: usize| (thread * job.count / self.shares.len()) as u32;
        for (thread, share) in self.shares.iter().enumerate() {
            share.set(bound(thread), bound(thread + 1));
        }
        slot.job = Some(job);
        slot.epoch += 1;
        self.epoch.store(slot.epoch, Ordering::Release);
        let parked = slot.parked;
        drop(slot);
        if parked > 0 {
            self.work.notify_all();
        }
    }

    /// Takes tasks until there are none left: those of the thread's own share, then others'.
    fn work_through(&self, job: Job, thread: usize) {
        let count = self.shares.len();
        let others = || (1..count).find_map(|away| self.shares[(thread + away) % count].take(false));
        while let Some(index) = self.shares[thread].take(true).or_else(others) {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (job.task)(index))) {
                lock(&self.slot).panic.get_or_insert(payload);
                for share in &self.shares {
                    share.set(0, 0);
                }
                return;
            }
        }
    }

    /// Closes the job to further workers and waits for those that have joined it. Their
    /// writes are visible to the caller afterwards, through the lock.
    fn finish(&self) -> Option<Box<dyn Any + Send>> {
        lock(&self.slot).job = None;
        spin(FINISHING, || self.active.load(Ordering::Acquire) == 0, || false);
        let mut slot = lock(&self.slot);
        while self.active.load(Ordering::Acquire) > 0 {
            slot.waiting = true;
            slot = self.done.wait(slot).unwrap_or_else(PoisonError::into_inner);
        }
        slot.waiting = false;
        slot.panic.take()
    }

    /// The life of a worker.
    fn serve(&self, thread: usize) {
        let mut seen = 0;
        let mut fetched = Fetched::default();
        loop {
            let fetch = || fetched.some(&self.ahead, thread, self.shares.len());
            spin(IDLE, || self.epoch.load(Ordering::Acquire) != seen, fetch);
            let mut slot = lock(&self.slot);
            while slot.epoch == seen {
                slot.parked += 1;
                slot = self.work.wait(slot).unwrap_or_else(PoisonError::into_inner);
                slot.parked -= 1;
            }
            if slot.closing {
                return;
            }
            seen = slot.epoch;
            // A worker that was late finds the job closed, and waits for the next one.
            let Some(job) = slot.job else { continue };
            self.active.fetch_add(1, Ordering::AcqRel);
            drop(slot);

            self.work_through(job, thread);

            let slot = lock(&self.slot);
            let left = self.active.fetch_sub(1, Ordering::AcqRel) - 1;
            let waiting = slot.waiting;
            drop(slot);
            if left == 0 && waiting {
                self.done.notify_one();
            }
        }
    }
}

/// Waits until `done`, or until the time is up. Meanwhile calls `useful`, which does a little and says
/// whether it did.
fn spin(time: Duration, done: impl Fn() -> bool, mut useful: impl FnMut() -> bool) {
    let start = Instant::now();
    while start.elapsed() < time {
        for _ in 0..LOOKS {
            if done() {
                return;
            }
            if !useful() {
                spin_loop();
            }
        }
    }
}

/// Locks. No thread of a pool can panic while it holds one of its locks, so a lock is never
/// poisoned; and if it were, what it guards would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        for threads in 0..5 {
            let pool = Pool::new(threads);
            assert_eq!(pool.threads(), threads.max(1));
            for count in [0, 1, 2, 3, 64, 1000] {
                let hits: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                pool.run(count, |i| {
                    hits[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn threads_get_as_many_tasks_each() {
        let pool = Pool::new(2);
        for (units, cost, block) in [
            (16, 4_096, 8),       // worth three: two
            (1000, 500, 42),      // worth 25: 24
            (10, 1_000, 10),      // worth none: one
            (320, 1_000_000, 10), // the most
            (7, usize::MAX, 1),   // few units
            (0, 5, 1),
            (5, 0, 5),
        ] {
            assert_eq!(pool.block(units, cost), block, "{units} units of {cost}");
        }
        assert_eq!(Pool::new(1).block(1000, 1_000_000), 1000);
    }

    #[test]
    fn many_short_jobs_in_a_row() {
        let pool = Pool::new(3);
        let mut data = vec![0u32; 97];
        for _ in 0..2000 {
            pool.for_each(data.chunks_mut(10), |_, part| {
                part.iter_mut().for_each(|x| *x += 1);
            });
        }
        assert!(data.iter().all(|&x| x == 2000));
    }

    #[test]
    fn parked_workers_wake_up() {
        let pool = Pool::new(2);
        for _ in 0..3 {
            thread::sleep(std::time::Duration::from_millis(5));
            let sum = AtomicUsize::new(0);
            pool.run(100, |i| {
                sum.fetch_add(i, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 4950);
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
        let pool = Pool::new(3);
        for _ in 0..20 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.run(50, |i| assert_ne!(i, 17, "task seventeen"));
            }));
            let payload = caught.expect_err("the panic was lost");
            let message = payload.downcast_ref::<String>().expect("a message");
            assert!(message.contains("task seventeen"), "{message}");

            let sum = AtomicUsize::new(0);
            pool.run(10, |i| {
                sum.fetch_add(i, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 45);
        }
    }

    #[test]
    fn a_task_may_use_the_pool() {
        let pool = Pool::new(2);
        let sum = AtomicUsize::new(0);
        pool.run(4, |_| {
            pool.run(4, |i| {
                sum.fetch_add(i, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), 4 * 6);
    }

    #[test]
    fn two_callers_at_once() {
        let pool = Pool::new(2);
        let sum = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        pool.run(5, |i| {
                            sum.fetch_add(i, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(sum.into_inner(), 2 * 200 * 10);
    }

    #[test]
    fn small_work_is_one_task() {
        let pool = Pool::new(2);
        assert_eq!(pool.block(100, 1), 100);
        assert_eq!(pool.block(100, 10_000), 4);
        assert_eq!(pool.block(1_000_000, 10_000), 31_250);
        assert_eq!(pool.block(0, 10), 1);
        assert_eq!(Pool::new(1).block(100, 1_000_000), 100);
    }
}
