package crash

// sync makes the content durable, except what an earlier failed sync lost. If times is true, it also makes the
// modification time durable.
func (node *inode) sync(d *Disk, times bool) {
	whole := len(node.lost) > 0
	for _, c := range node.pending {
		whole = whole || c.cut
	}
	if whole {
		node.syncAll(d)
	} else {
		for _, c := range node.pending {
			if len(c.data) > 0 {
				for i := int(c.off / pageSize); i <= int((c.off+int64(len(c.data))-1)/pageSize); i++ {
					node.disk.set(i, node.cache.page(i))
				}
			}
		}
	}
	node.disk.size = node.cache.size
	node.pending = node.pending[:0]
	clean := len(node.lost) == 0
	switch {
	case times:
		node.disk.mtime = node.cache.mtime
	case !node.disk.mtime.Equal(node.cache.mtime):
		node.pending = append(node.pending, change{seq: d.tick(), size: node.cache.size, mtime: node.cache.mtime})
		clean = false
	}
	if clean {
		delete(d.dirty, node)
	}
}

func (node *inode) syncAll(d *Disk) {
	old := node.disk
	node.disk.pages = append([]*page(nil), node.cache.pages...)
	for i, mask := range node.lost {
		if mask == 0 {
			delete(node.lost, i)
			continue
		}
		node.disk.pages[i] = mix(node.cache.page(i), old.page(i), mask, d.gen)
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
func (node *inode) lose() {
	var rest []change
	for _, c := range node.pending {
		if len(c.data) > 0 {
			if node.lost == nil {
				node.lost = map[int]uint8{}
			}
			first, last := sectors(c.off, len(c.data))
			for s := first; s <= last; s++ {
				node.lost[s/perPage] |= 1 << (s % perPage)
			}
			c.data = nil
		}
		rest = append(rest, c)
	}
	// Content that was cut off meanwhile is not lost but removed.
	for i := range node.lost {
		if i >= len(node.cache.pages) {
			delete(node.lost, i)
		}
	}
	node.pending = rest
}

// dropLost replaces, in the cache, the sectors whose data a failed sync lost by their contents on the disk.
func (node *inode) dropLost(d *Disk) {
	for i, mask := range node.lost {
		if i < len(node.cache.pages) {
			node.cache.pages[i] = mix(node.cache.page(i), node.disk.page(i), mask, d.gen)
		}
	}
	node.lost = nil
	node.version++
}

// barrier makes all contents and names on the disk durable, as a sync of the whole file system does.
func (d *Disk) barrier() {
	for in := range d.dirty {
		in.sync(d, true)
	}
	for _, s := range d.pending {
		s.settle(d)
	}
	d.compact()
}
