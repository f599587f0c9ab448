"""Sources of rows for tests: the same rows, from elsewhere."""

import torch

from misscnf.data.rows import Batch, MemoryRows


class ShardedRows:
    """Rows in shards of odd sizes, none of which is handed out whole.

    Arguments:
        values: (N, d).
        observed: (N, d).
        sizes: The sizes of the shards; they repeat.
    """

    def __init__(self, values, observed, sizes=(7, 13, 1, 29)):
        self.shards, start = [], 0
        while start < len(values):
            stop = start + sizes[len(self.shards) % len(sizes)]
            shard = values[start:stop].clone(), observed[start:stop].clone()
            self.shards.append(MemoryRows(*shard))
            start = stop
        self.starts = torch.tensor([0, *(len(shard) for shard in self.shards)]).cumsum(0)
        self.columns = values.shape[1]
        self.most = 0
        """the most rows that anyone has asked for at once"""

    def __len__(self):
        return int(self.starts[-1])

    def take(self, rows):
        self.most = max(self.most, len(rows))
        which = torch.bucketize(rows, self.starts, right=True) - 1
        parts = Batch(
            torch.zeros(len(rows), self.columns, dtype=torch.float64),
            torch.zeros(len(rows), self.columns, dtype=torch.bool),
        )
        for number in which.unique().tolist():
            mine = which == number
            found = self.shards[number].take(rows[mine] - self.starts[number])
            for part, of_shard in zip(parts, found, strict=True):
                part[mine] = of_shard
        return parts

    def batches(self, size=65_536):
        return (self.take(part) for part in torch.arange(len(self)).split(size))
