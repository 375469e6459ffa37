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

func (node *inode) note(d *Disk, c change) {
	c.seq, c.size, c.mtime = d.tick(), node.cache.size, node.cache.mtime
	node.pending = append(node.pending, c)
	node.version++
	d.dirty[node] = struct{}{}
	node.fold()
}

// write writes as many bytes of p, at offset off, as the disk has space for, and returns their number.
func (node *inode) write(d *Disk, p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	p, err := node.reserve(d, p, off)
	if len(p) == 0 {
		return 0, err
	}
	node.cache.write(p, off, d.gen, &node.disk)
	node.cache.size = max(node.cache.size, off+int64(len(p)))
	node.cache.mtime = d.now()
	c := change{data: bytes.Clone(p), off: off}
	if len(node.lost) > 0 {
		c = node.redeem(c)
	}
	node.note(d, c)
	return len(p), err
}

// reserve counts the new pages that a write needs against the capacity of the disk. It returns the part of the write
// for which there is space, and an error if that is not all of it.
func (node *inode) reserve(d *Disk, p []byte, off int64) ([]byte, error) {
	first, last := int(off/pageSize), int((off+int64(len(p))-1)/pageSize)
	for i := first; i <= last; i++ {
		if node.cache.page(i) != nil {
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
func (node *inode) redeem(c change) change {
	first, last := sectors(c.off, len(c.data))
	for s := first; s <= last; s++ {
		node.lost[s/perPage] &^= 1 << (s % perPage)
	}
	start := int64(first) * sectorSize
	whole := make([]byte, min(int64(last+1)*sectorSize, node.cache.size)-start)
	node.cache.read(whole, start)
	c.data, c.off = whole, start
	return c
}

func (node *inode) truncate(d *Disk, size int64) error {
	if size < 0 {
		return syscall.EINVAL
	}
	down := size < node.cache.size
	if down {
		d.free(node, (size+pageSize-1)/pageSize*pageSize)
		for _, p := range node.cache.cut(size, d.gen, &node.disk) {
			d.bury(p)
		}
		for i := range node.lost {
			if int64(i)*pageSize >= size {
				delete(node.lost, i)
			}
		}
	}
	node.cache.size = size
	node.cache.mtime = d.now()
	node.note(d, change{cut: down})
	return nil
}

// fold merges the older half of a long list of pending writes into one, so that a file that is never synced (the shared
// page) stays cheap. After that, of each sector only the newest of the merged versions can survive a crash.
func (node *inode) fold() {
	const limit = 4096
	if len(node.pending) < limit || len(node.pending)%limit != 0 {
		return
	}
	old := node.pending[:len(node.pending)/2]
	for _, c := range old {
		if c.cut {
			return
		}
	}
	gen := new(generation)
	c := content{pages: append([]*page(nil), node.disk.pages...), size: node.disk.size}
	newest := map[int]int{} // sector → index of the last write to it
	for i, w := range old {
		if len(w.data) > 0 {
			c.write(w.data, w.off, gen, &node.disk)
			first, last := sectors(w.off, len(w.data))
			for s := first; s <= last; s++ {
				newest[s] = i
			}
		}
	}
	end := old[len(old)-1]
	c.size = max(node.disk.size, end.size)
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
	node.pending = append(merged, node.pending[len(old):]...)
}
