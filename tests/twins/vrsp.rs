//! Algorithm 1, literally: the lightest pool that is not full is found by looking at all of them.

// Tests and benches include this file by its path; none of them uses all of it.
#![allow(dead_code, unreachable_pub)]

/// Members of each pool in the order they came, and load of each pool.
pub fn place(work: &[u64], pool_size: usize) -> (Vec<Vec<u32>>, Vec<u64>) {
    let pools = work.len() / pool_size;
    let mut order: Vec<usize> = (0..work.len()).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(work[index]), index));

    let mut members: Vec<Vec<u32>> = vec![Vec::new(); pools];
    let mut loads: Vec<u64> = vec![0; pools];
    for index in order {
        let mut lightest = None;
        for pool in 0..pools {
            if members[pool].len() == pool_size {
                continue;
            }
            match lightest {
                Some(best) if loads[best] <= loads[pool] => {}
                _ => lightest = Some(pool),
            }
        }
        let pool = lightest.expect("K pools of P sequences take K*P sequences");
        members[pool].push(index as u32);
        loads[pool] += work[index];
    }
    (members, loads)
}
