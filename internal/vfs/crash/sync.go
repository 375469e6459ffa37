package crash

// sync makes the content durable, except what an earlier failed sync lost. If times is true, it also makes the
// modification time durable.
func (in *inode) sync(d *Disk, times bool) {
	whole := len(in.lost) > 0
	for _, c := range in.pending {
		whole = whole || c.cut
	}
	if whole {
		in.syncAll(d)
	} else {
		for _, c := range in.pending {
			if len(c.data) > 0 {
				for i := int(c.off / pageSize); i <= int((c.off+int64(len(c.data))-1)/pageSize); i++ {
					in.disk.set(i, in.cache.page(i))
				}
			}
		}
	}
	in.disk.size = in.cache.size
	in.pending = in.pending[:0]
	clean := len(in.lost) == 0
	switch {
	case times:
		in.disk.mtime = in.cache.mtime
	case !in.disk.mtime.Equal(in.cache.mtime):
		in.pending = append(in.pending, change{seq: d.tick(), size: in.cache.size, mtime: in.cache.mtime})
		clean = false
	}
	if clean {
		delete(d.dirty, in)
	}
}

func (in *inode) syncAll(d *Disk) {
	old := in.disk
	in.disk.pages = append([]*page(nil), in.cache.pages...)
	for i, mask := range in.lost {
		if mask == 0 {
			delete(in.lost, i)
			continue
		}
		in.disk.pages[i] = mix(in.cache.page(i), old.page(i), mask, d.gen)
	}
}

// mix returns a copy of page a in which the sectors in mask come from page b.
func mix(a, b *page, mask uint8, gen *generation) *page {
	m := &page{owner: gen}
	if a != nil {
		m.b = a.b
	}
	for s := range perPage {
		if mask&(1<<s) == 0 {
			continue
		}
		to := m.b[s*sectorSize : (s+1)*sectorSize]
		if b != nil {
			copy(to, b.b[s*sectorSize:])
		} else {
			clear(to)
		}
	}
	return m
}

func (c *content) set(i int, p *page) {
	for len(c.pages) <= i {
		c.pages = append(c.pages, nil)
	}
	c.pages[i] = p
}

// lose simulates a failed sync: pending data look clean from now on. Size and times stay pending, because they reach
// the disk separately.
func (in *inode) lose() {
	var rest []change
	for _, c := range in.pending {
		if len(c.data) > 0 {
			if in.lost == nil {
				in.lost = map[int]uint8{}
			}
			first, last := sectors(c.off, len(c.data))
			for s := first; s <= last; s++ {
				in.lost[s/perPage] |= 1 << (s % perPage)
			}
			c.data = nil
		}
		rest = append(rest, c)
	}
	// Content that was cut off meanwhile is not lost but removed.
	for i := range in.lost {
		if i >= len(in.cache.pages) {
			delete(in.lost, i)
		}
	}
	in.pending = rest
}

// dropLost replaces the lost sectors by those on the disk.
func (in *inode) dropLost(d *Disk) {
	for i, mask := range in.lost {
		if i < len(in.cache.pages) {
			in.cache.pages[i] = mix(in.cache.page(i), in.disk.page(i), mask, d.gen)
		}
	}
	in.lost = nil
	in.version++
}

// barrier makes everything durable.
func (d *Disk) barrier() {
	for in := range d.dirty {
		in.sync(d, true)
	}
	for _, s := range d.pending {
		s.settle(d)
	}
	d.compact()
}
