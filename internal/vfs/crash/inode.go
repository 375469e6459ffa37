package crash

import (
	"io/fs"
	"time"
)

// inode is a file or a folder.
type inode struct {
	id    uint64 // number of the inode, which is never reused
	ino   uint64 // the number that Stat returns; reused after removal, as file systems do
	mode  fs.FileMode
	nlink int
	name  string // the name that the file or folder was given last
	early bool   // its last name was removed before KeepFreed
	descs int    // number of open files, in any process
	lease *file  // the file that holds a lease, or nil

	entries, durable map[string]*inode // entries of a folder: the visible ones, and the durable ones
	steps            []*step           // pending steps that change the entries of a folder
	last             map[string]*step  // the last pending step for each name in a folder

	cache, disk content
	pending     []change
	lost        map[int]uint8 // bits of the sectors that a failed sync lost, neither dirty nor durable, by page
	locks       []*lock       // locks that are held on the inode

	version, flatVersion uint64 // version of the content, and of flat
	flat                 []byte // snapshot for Map
}

// content is the content of a file. A nil page is all zeros.
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

// release frees node if it has no names and no open files.
func (d *Disk) release(node *inode) {
	if node.nlink > 0 || node.descs > 0 || node.ino == 0 {
		return
	}
	d.used -= inodeCost
	d.free(node, 0)
	for _, p := range node.cache.pages {
		d.bury(p)
	}
	// The content is kept: a crash may undo the removal.
	d.freeInos = append(d.freeInos, node.ino)
	node.ino = 0
	delete(d.dirty, node)
}

// bury releases a page of a removed file. The contents of the pages that were released last are kept for LoseDataOld.
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
	if p.owner == d.gen { // otherwise the page is immutable already, and another Disk may share it
		p.owner = nil
	}
}
