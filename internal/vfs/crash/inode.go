package crash

import (
	"io/fs"
	"time"
)

// inode is a file or a folder.
type inode struct {
	id    uint64 // never used again
	ino   uint64 // what Stat says; used again after removal, as file systems do
	mode  fs.FileMode
	nlink int
	name  string // the last one that it was given
	early bool   // it lost its last name before KeepFreed
	descs int    // open descriptions, in any process
	lease *file  // its holder

	entries, durable map[string]*inode // of a folder: as seen, and as on the disk
	steps            []*step           // of a folder: pending ones that touch it
	last             map[string]*step  // of a folder: the last pending one for a name

	cache, disk content
	pending     []change
	lost        map[int]uint8 // page → sectors that are neither dirty nor durable
	locks       []*lock       // that hold it

	version, flatVersion uint64 // of the content, and of flat
	flat                 []byte // for Map
}

// content is what a file holds. A nil page is zero.
type content struct {
	pages []*page
	size  int64
	mtime time.Time
}

func (d *Disk) newInode(mode fs.FileMode) *inode {
	d.ids++
	in := &inode{id: d.ids, mode: mode}
	if n := len(d.freeInos); n > 0 {
		in.ino, d.freeInos = d.freeInos[n-1], d.freeInos[:n-1]
	} else {
		in.ino = d.nextIno
		d.nextIno++
	}
	in.cache.mtime = d.now()
	in.disk.mtime = in.cache.mtime
	if mode.IsDir() {
		in.entries, in.durable, in.last = map[string]*inode{}, map[string]*inode{}, map[string]*step{}
	}
	return in
}

// release frees what nobody can reach any more.
func (d *Disk) release(in *inode) {
	if in.nlink > 0 || in.descs > 0 || in.ino == 0 {
		return
	}
	d.used -= inodeCost
	d.free(in, 0)
	for _, p := range in.cache.pages {
		d.bury(p)
	}
	// The content stays: a crash may undo the removal.
	d.freeInos = append(d.freeInos, in.ino)
	in.ino = 0
	delete(d.dirty, in)
}

// bury frees a page, and keeps some for LoseDataOld.
func (d *Disk) bury(p *page) {
	const keep = 64
	if p == nil {
		return
	}
	d.used -= pageSize
	if len(d.ghosts) >= 2*keep {
		d.ghosts = append(d.ghosts[:0], d.ghosts[keep:]...)
	}
	d.ghosts = append(d.ghosts, p)
	if p.owner == d.gen { // else nobody writes to it already, and another Disk may have it too
		p.owner = nil
	}
}
