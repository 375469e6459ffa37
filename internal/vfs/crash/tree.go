package crash

import (
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// step is one pending change of names. It survives as a whole or not at all, and only together with the steps in
// follows.
type step struct {
	seq     uint64
	entries []entry
	follows []*step // earlier steps on the same names, without which this one cannot survive
	settled bool
}

type entry struct {
	dir  *inode
	name string
	to   *inode // nil: the name is removed
}

// change applies entries as one step: all processes see the changes at once, and the step is recorded as pending.
func (d *Disk) change(entries ...entry) {
	s := &step{seq: d.tick(), entries: entries}
	for i, e := range entries {
		if e.to == nil {
			delete(e.dir.entries, e.name)
		} else {
			e.dir.entries[e.name] = e.to
			e.to.name = e.name
		}
		if prev := e.dir.last[e.name]; prev != nil && !prev.settled {
			s.follows = append(s.follows, prev)
		}
		e.dir.last[e.name] = s
		e.dir.cache.mtime = d.now()
		if i == 0 || entries[0].dir != e.dir {
			e.dir.steps = append(e.dir.steps, s)
		}
	}
	d.pending = append(d.pending, s)
}

// settle makes a step durable, and before that the steps that it follows.
func (s *step) settle(d *Disk) {
	if s.settled {
		return
	}
	s.settled = true // there are no cycles: steps follow earlier ones only
	d.settled++
	for _, f := range s.follows {
		f.settle(d)
	}
	for _, e := range s.entries {
		apply(e.dir.durable, e)
		if e.dir.last[e.name] == s {
			delete(e.dir.last, e.name)
		}
	}
	s.follows = nil
}

func apply(m map[string]*inode, e entry) {
	if e.to == nil {
		delete(m, e.name)
	} else {
		m[e.name] = e.to
	}
}

func (d *Disk) syncDir(node *inode) {
	for _, s := range node.steps {
		s.settle(d)
	}
	node.steps = nil
	node.disk.mtime = node.cache.mtime
	d.compact()
}

// compact removes the settled steps from d.pending if they are at least half of the list and at least 64.
func (d *Disk) compact() {
	if d.settled*2 < len(d.pending) || d.settled < 64 {
		return
	}
	rest := d.pending[:0]
	for _, s := range d.pending {
		if !s.settled {
			rest = append(rest, s)
		}
	}
	clear(d.pending[len(rest):])
	d.pending, d.settled = rest, 0
}

// clean returns a path in the form that lookup requires: with slashes, from the root.
func clean(name string) string {
	name = filepath.ToSlash(name)
	if vol := filepath.VolumeName(name); vol != "" {
		name = name[len(vol):]
	}
	return path.Clean("/" + name)
}

// lookup returns the inode of a name, the folder dir that has the name, and the last part base of the name. If the
// folder exists but the name does not, node is nil and err is nil.
func (d *Disk) lookup(name string) (dir *inode, base string, node *inode, err error) {
	if name == "" {
		return nil, "", nil, syscall.ENOENT
	}
	p := clean(name)
	if p == "/" {
		return d.root, "", d.root, nil
	}
	dir, p = d.root, p[1:]
	for {
		first, rest, more := strings.Cut(p, "/")
		next := dir.entries[first]
		if !more {
			return dir, first, next, nil
		}
		switch {
		case next == nil:
			return nil, "", nil, syscall.ENOENT
		case next.entries == nil:
			return nil, "", nil, syscall.ENOTDIR
		}
		dir, p = next, rest
	}
}

// lookupExisting does the same as lookup, but returns the error ENOENT if the name does not exist.
func (d *Disk) lookupExisting(name string) (dir *inode, base string, node *inode, err error) {
	dir, base, node, err = d.lookup(name)
	if err == nil && node == nil {
		err = syscall.ENOENT
	}
	return dir, base, node, err
}

// folder returns the inode of a folder, which must exist.
func (d *Disk) folder(name string) (*inode, error) {
	_, _, in, err := d.lookupExisting(name)
	if err == nil && in.entries == nil {
		err = syscall.ENOTDIR
	}
	return in, err
}
