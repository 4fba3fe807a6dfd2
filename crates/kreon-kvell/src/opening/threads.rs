//! Work that is shared out to threads.

use std::panic::resume_unwind;
use std::thread;

use kreon_base::Result;

/// Does each share of a work in a thread of its own, the first one in this. All that they come to, or the first failure; all
/// have ended then.
pub fn in_threads<S: Send, R: Send>(
    shares: Vec<S>,
    work: impl Fn(S) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let mut shares = shares.into_iter();
    let first = shares.next();
    let work = &work;
    thread::scope(|scope| {
        let others: Vec<_> = shares
            .map(|share| scope.spawn(move || work(share)))
            .collect();
        let mut outcomes: Vec<Result<R>> = first.map(work).into_iter().collect();
        for other in others {
            outcomes.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        outcomes.into_iter().collect()
    })
}

/// Does each piece of a work in one of up to `threads` threads, in turn. What they come to, in the order of the pieces, or a
/// failure.
pub fn shared_out<P: Send, R: Send>(
    pieces: impl IntoIterator<Item = P>,
    threads: usize,
    work: impl Fn(P) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let pieces = pieces.into_iter().enumerate();
    let mut shares: Vec<Vec<(usize, P)>> = Vec::new();
    for (number, piece) in pieces {
        match shares.get_mut(number % threads.max(1)) {
            Some(share) => share.push((number, piece)),
            None => shares.push(vec![(number, piece)]),
        }
    }
    let done = in_threads(shares, |share| {
        let done = share
            .into_iter()
            .map(|(number, piece)| Ok((number, work(piece)?)));
        done.collect::<Result<Vec<_>>>()
    })?;
    let mut done: Vec<(usize, R)> = done.into_iter().flatten().collect();
    done.sort_by_key(|it| it.0);
    Ok(done.into_iter().map(|it| it.1).collect())
}

#[cfg(test)]
mod tests {
    use kreon_base::Error;

    use super::*;

    #[test]
    fn pieces_come_back_in_their_order_whoever_does_them() {
        for threads in [0, 1, 2, 3, 50] {
            let doubled = shared_out(0..10, threads, |number| Ok(number * 2)).expect("no failure");
            assert_eq!(doubled, (0..10).map(|it| it * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_failure_of_one_piece_is_that_of_the_work() {
        let outcome = shared_out(0..10, 3, |number| match number {
            7 => Err(Error::corruption("seven")),
            _ => Ok(()),
        });
        assert!(outcome.is_err());
    }
}
