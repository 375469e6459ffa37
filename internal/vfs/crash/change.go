package crash

import (
	"bytes"
	"syscall"
	"time"
)

// change is a pending change of a file. Every change records the size and time of the file after it.
type change struct {
	seq   uint64
	data  []byte // bytes written at off; nil if only size or time changed
	off   int64
	cut   bool // the size went down: everything after it was removed
	size  int64
	mtime time.Time
}

func (in *inode) note(d *Disk, c change) {
	c.seq, c.size, c.mtime = d.tick(), in.cache.size, in.cache.mtime
	in.pending = append(in.pending, c)
	in.version++
	d.dirty[in] = struct{}{}
	in.fold()
}

// write writes as many of the bytes as the disk has space for, and returns their number.
func (in *inode) write(d *Disk, p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	p, err := in.reserve(d, p, off)
	if len(p) == 0 {
		return 0, err
	}
	in.cache.write(p, off, d.gen, &in.disk)
	in.cache.size = max(in.cache.size, off+int64(len(p)))
	in.cache.mtime = d.now()
	c := change{data: bytes.Clone(p), off: off}
	if len(in.lost) > 0 {
		c = in.redeem(c)
	}
	in.note(d, c)
	return len(p), err
}

// reserve charges the pages that a write adds to the capacity of the disk. It returns the part of the write for which
// there is space.
func (in *inode) reserve(d *Disk, p []byte, off int64) ([]byte, error) {
	first, last := int(off/pageSize), int((off+int64(len(p))-1)/pageSize)
	for i := first; i <= last; i++ {
		if in.cache.page(i) != nil {
			continue
		}
		if err := d.charge(pageSize); err != nil {
			return p[:max(0, int64(i)*pageSize-off)], err
		}
	}
	return p, nil
}

// redeem handles a write to sectors whose data a failed sync lost. It removes the sectors that the write covers from
// the lost sectors. The returned write covers whole sectors: where it did not cover a sector completely, it includes
// the lost data of that sector.
func (in *inode) redeem(c change) change {
	first, last := sectors(c.off, len(c.data))
	for s := first; s <= last; s++ {
		in.lost[s/perPage] &^= 1 << (s % perPage)
	}
	start := int64(first) * sectorSize
	whole := make([]byte, min(int64(last+1)*sectorSize, in.cache.size)-start)
	in.cache.read(whole, start)
	c.data, c.off = whole, start
	return c
}

func (in *inode) truncate(d *Disk, size int64) error {
	if size < 0 {
		return syscall.EINVAL
	}
	down := size < in.cache.size
	if down {
		d.free(in, (size+pageSize-1)/pageSize*pageSize)
		for _, p := range in.cache.cut(size, d.gen, &in.disk) {
			d.bury(p)
		}
		for i := range in.lost {
			if int64(i)*pageSize >= size {
				delete(in.lost, i)
			}
		}
	}
	in.cache.size = size
	in.cache.mtime = d.now()
	in.note(d, change{cut: down})
	return nil
}

// fold merges the older half of a long list of pending writes into one, so that a file that is never synced (the shared
// page) stays cheap. After that, of each sector only the newest of the merged versions can survive a crash.
func (in *inode) fold() {
	const limit = 4096
	if len(in.pending) < limit || len(in.pending)%limit != 0 {
		return
	}
	old := in.pending[:len(in.pending)/2]
	for _, c := range old {
		if c.cut {
			return
		}
	}
	gen := new(generation)
	c := content{pages: append([]*page(nil), in.disk.pages...), size: in.disk.size}
	newest := map[int]int{} // sector → index of the last write to it
	for i, w := range old {
		if len(w.data) > 0 {
			c.write(w.data, w.off, gen, &in.disk)
			first, last := sectors(w.off, len(w.data))
			for s := first; s <= last; s++ {
				newest[s] = i
			}
		}
	}
	end := old[len(old)-1]
	c.size = max(in.disk.size, end.size)
	var merged []change
	for i, w := range old {
		if len(w.data) == 0 {
			continue
		}
		first, last := sectors(w.off, len(w.data))
		for s := first; s <= last; s++ {
			if newest[s] != i {
				continue
			}
			image := make([]byte, sectorSize)
			start := int64(s) * sectorSize
			image = image[:c.read(image, start)]
			merged = append(merged, change{seq: w.seq, data: image, off: start, size: w.size, mtime: w.mtime})
		}
	}
	merged = append(merged, change{seq: end.seq, size: end.size, mtime: end.mtime})
	in.pending = append(merged, in.pending[len(old):]...)
}
