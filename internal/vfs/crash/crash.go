package crash

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash simulates a power failure and returns the disk that the next boot finds: it has the durable state, those other
// changes that the pattern keeps, another boot id, no locks and no processes. The same disk, pattern and random numbers
// give the same result. The disk itself continues unaffected.
func (d *Disk) Crash(p Pattern, rng *rand.Rand) *Disk {
	return d.successor(p, rng, d.boot+1)
}

// Copy returns a copy of the disk in its present state and in the same boot. In the copy everything is durable and all
// processes are killed. With copies, a test can try several things on the same state of a machine that has not lost
// power.
func (d *Disk) Copy() *Disk {
	return d.successor(KeepAll, rand.New(rand.NewPCG(0, 0)), d.boot)
}

func (d *Disk) successor(p Pattern, rng *rand.Rand, boot uint64) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	// From now on both disks share the existing pages, so neither may change them in place.
	d.gen = new(generation)
	next := newDisk(boot)
	next.capacity, next.clock, next.seq, next.lacks = d.capacity, d.clock, d.seq, d.lacks
	next.nextIno, next.nextPID = d.nextIno, d.nextPID
	next.ghosts = slices.Clone(d.ghosts)
	next.keepsFreed, next.freed = d.keepsFreed, slices.Clone(d.freed)
	loss := p.loss(d, rng)
	b := booter{
		d: d, next: next, loss: loss, rng: rng,
		entries: map[*inode]map[string]*inode{},
		done:    map[*inode]*inode{d.root: next.root},
	}
	b.steps()
	b.folder(d.root, next.root)
	return next
}

type booter struct {
	d, next *Disk
	loss    loss
	rng     *rand.Rand
	entries map[*inode]map[string]*inode // entries of the folders that have surviving pending steps
	done    map[*inode]*inode
}

// steps decides which pending changes of file names survive the crash.
func (b *booter) steps() {
	kept := map[*step]bool{}
	for _, s := range b.d.pending {
		if s.settled || !b.loss.step(s.seq) {
			continue
		}
		if slices.ContainsFunc(s.follows, func(f *step) bool { return !f.settled && !kept[f] }) {
			continue
		}
		kept[s] = true
		for _, e := range s.entries {
			m := b.entries[e.dir]
			if m == nil {
				m = maps.Clone(e.dir.durable)
				b.entries[e.dir] = m
			}
			apply(m, e)
		}
	}
}

// folder copies the entries of a folder from the old disk to the new one, in the order of their names, so that random
// numbers are used in the same order each time.
func (b *booter) folder(from, to *inode) {
	entries := b.entries[from]
	if entries == nil {
		entries = from.durable
	}
	to.cache.mtime, to.disk.mtime = from.disk.mtime, from.disk.mtime
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		child := b.inode(entries[name])
		child.nlink++
		to.entries[name], to.durable[name] = child, child
	}
}

func (b *booter) inode(from *inode) *inode {
	if to := b.done[from]; to != nil {
		return to
	}
	to := b.next.newInode(from.mode)
	to.name = from.name
	b.done[from] = to
	if from.ino != 0 { // the number may be in use again since a removal that did not survive
		to.ino = from.ino
	}
	b.next.used += inodeCost
	if from.entries != nil {
		b.folder(from, to)
		return to
	}
	to.disk = b.content(from)
	to.cache = to.disk
	to.cache.pages = slices.Clone(to.disk.pages)
	for _, p := range to.cache.pages {
		if p != nil {
			b.next.used += pageSize
		}
	}
	return to
}

// content returns the content that a file has after the crash, as the loss pattern decides.
func (b *booter) content(node *inode) content {
	out := content{pages: slices.Clone(node.disk.pages), size: node.disk.size, mtime: node.disk.mtime}
	b.failedSync(node, &out)
	if len(node.pending) == 0 {
		return out
	}
	var seqs []uint64
	versions := map[int][]uint64{}
	for _, c := range node.pending {
		seqs = append(seqs, c.seq)
		if len(c.data) > 0 {
			first, last := sectors(c.off, len(c.data))
			for s := first; s <= last; s++ {
				versions[s] = append(versions[s], c.seq)
			}
		}
	}
	attr := b.loss.attr(seqs)
	upTo := make(map[int]uint64, len(versions))
	for _, s := range slices.Sorted(maps.Keys(versions)) {
		upTo[s] = b.loss.sector(versions[s])
	}
	for _, c := range node.pending {
		if c.seq <= attr {
			out.size, out.mtime = c.size, c.mtime
			if c.cut {
				out.cut(c.size, b.next.gen, nil)
			}
		}
		if len(c.data) == 0 {
			continue
		}
		first, last := sectors(c.off, len(c.data))
		for s := first; s <= last; s++ {
			if c.seq <= upTo[s] {
				piece, at := part(c.data, c.off, s)
				out.write(piece, at, b.next.gen, nil)
			}
		}
	}
	if b.loss.old {
		b.haunt(node, &out, upTo, versions)
	}
	out.cut(out.size, b.next.gen, nil)
	return out
}

// failedSync lets sectors that a failed sync lost reach the disk nevertheless, if the pattern allows it.
func (b *booter) failedSync(node *inode, out *content) {
	for _, i := range slices.Sorted(maps.Keys(node.lost)) {
		for s := range perPage {
			if node.lost[i]&(1<<s) == 0 || !b.loss.failed() {
				continue
			}
			var image [sectorSize]byte
			at := int64(i)*pageSize + int64(s)*sectorSize
			node.cache.read(image[:], at)
			out.write(image[:], at, b.next.gen, nil)
		}
	}
}

// haunt fills sectors with the content of removed files: the sectors after the durable end of a file for which no
// written version survives the crash. Each such sector gets the bytes of a random removed page.
func (b *booter) haunt(node *inode, out *content, upTo map[int]uint64, versions map[int][]uint64) {
	if len(b.d.ghosts) == 0 {
		return
	}
	for _, s := range slices.Sorted(maps.Keys(versions)) {
		at := int64(s) * sectorSize
		if at < node.disk.size || at >= out.size || upTo[s] >= versions[s][0] {
			continue
		}
		g := b.d.ghosts[b.rng.IntN(len(b.d.ghosts))]
		old := g.b[at%pageSize:][:sectorSize]
		if [sectorSize]byte(old) == ([sectorSize]byte{}) { // use the start of a small file instead of zeros
			old = g.b[:sectorSize]
		}
		out.write(old, at, b.next.gen, nil)
	}
}
