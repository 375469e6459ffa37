package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// Below is the file system for a store, a backup, or whatever else begins at root: no operation
// on what is below root goes through a symbolic link, wherever it leads; that is a *NotFolderError.
// root itself may be reached through links, and what is elsewhere is not looked at.
//
// On Linux and darwin the folder that an operation works in is opened first, through no link, and
// the operation works on that descriptor: a folder that is replaced by a link in between changes
// nothing. So too with what is opened. Windows has a look at each folder before.
//
// Every caller that has its FS from here is covered, whatever path it makes: nobody can
// forget to look.
//
// Where fsys is no file system of the operating system (there are no links in vfs/crash),
// or a wrapper of one, it is returned as it is: the wrapper goes around this one.
func Below(fsys FS, root string) FS {
	if w, ok := fsys.(interface{ Below(root string) FS }); ok {
		return w.Below(root)
	}
	b, ok := extended(fsys)
	if !ok {
		return fsys
	}
	b.add(root, false)
	return b
}

// Only is Below for each of roots, and refuses all other paths with an *OutsideError: a path that was
// made of what a file says leads nowhere else, whatever it says. Allowed are also the folders above a
// root, which are needed to make it and to sync its name: they can be looked at, made and synced.
// literal is one root more, "" for none, whose folders are the user's own: it may be above the others.
func Only(fsys FS, literal string, roots ...string) FS {
	b, ok := extended(fsys)
	if !ok {
		return fsys
	}
	b.only = true
	for _, root := range roots {
		b.add(root, false)
	}
	if literal != "" {
		b.add(literal, true)
	}
	return b
}

func extended(fsys FS) (*below, bool) {
	b := &below{}
	switch f := fsys.(type) {
	case osFS:
	case *below:
		b.roots, b.only, b.patience = append(b.roots, f.roots...), f.only, f.patience
	default:
		return nil, false
	}
	b.init()
	return b, true
}

func (b *below) add(root string, literal bool) {
	root = filepath.Clean(root)
	head := root
	switch {
	case root == ".":
		head = ""
	case !os.IsPathSeparator(root[len(root)-1]): // as that of "/" is
		head += string(filepath.Separator)
	}
	b.roots = append(b.roots, place{root: root, head: head, literal: literal})
}

// below is osFS with a guarded way. Of Stat see there; Volume and Host enter nothing.
type below struct {
	osFS
	roots    []place
	only     bool
	ways     ways
	patience *patience   // with leases; nil: the one of osFS
	manners  sync.Map    // of folders, by path: *manners
	links    atomic.Bool // a root is reached through a link, or the system cannot refuse links itself
}

type place struct {
	root, head string // head: what the names of all below it begin with
	literal    bool
	held       *heldFolder // nil: the root is reached by its path, each time
}

// under is where in name the part begins that is below a root; -1: it is below none. Of several
// roots the topmost counts: what is below it is looked at.
func (b *below) under(name string) int {
	at, _ := b.place(name)
	return at
}

// place is under, with the handle of that root, nil if it has none.
func (b *below) place(name string) (at int, held *heldFolder) {
	least, literal := -1, -1
	var heldLiteral *heldFolder
	for _, p := range b.roots {
		n := len(p.head)
		switch {
		case len(name) <= n || name[:n] != p.head || n == 0 && (filepath.IsAbs(name) || strings.HasPrefix(name, "..")):
		case p.literal:
			literal, heldLiteral = n, p.held
		case least < 0 || n < least:
			least, held = n, p.held
		}
	}
	if least < 0 {
		least, held = literal, heldLiteral
	}
	if least >= 0 && upward(name[least:]) {
		return -1, nil
	}
	return least, held
}

// anchor returns the handle of the root that name is or lies below, and the path from there; nil if
// that root has no handle.
func (b *below) anchor(name string) (held *heldFolder, rest string) {
	if at, held := b.place(name); at >= 0 {
		if rest = strings.TrimLeft(name[at:], string(filepath.Separator)); rest == "" {
			rest = "."
		}
		return held, rest
	}
	root := strings.TrimSuffix(name, throughLink(""))
	for _, p := range b.roots {
		if p.held != nil && root == p.root {
			return p.held, "."
		}
	}
	return nil, ""
}

// upward: does a path below a root lead to a folder above it, by its elements "." and ".." alone?
func upward(path string) bool {
	dots := func(r rune) bool { return r == '.' || r < 0x80 && os.IsPathSeparator(uint8(r)) }
	return strings.HasPrefix(path, ".") && strings.TrimLeftFunc(path, dots) == "" && climbs(path)
}

// inside refuses what Only is to refuse. above says that a folder above a root will do.
func (b *below) inside(name string, above bool) error {
	at := b.under(name)
	if at >= 0 {
		if !climbs(name[at:]) {
			return nil
		}
	} else if !b.only || b.isRoot(name) || b.isRoot(strings.TrimSuffix(name, throughLink(""))) {
		return nil
	}
	e := &OutsideError{Path: name}
	whole, err := filepath.Abs(name)
	for _, p := range b.roots {
		root, rerr := filepath.Abs(p.root)
		if err == nil && rerr == nil && at < 0 && (whole == root || above && isAbove(whole, root)) {
			return nil
		}
		e.Roots = append(e.Roots, p.root)
	}
	return e
}

// climbs: is an element ".."?
func climbs(path string) bool {
	if !strings.Contains(path, "..") {
		return false
	}
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) }) {
		if part == ".." {
			return true
		}
	}
	return false
}

// isAbove: does a folder contain another? Both are whole paths.
func isAbove(dir, other string) bool {
	rest, ok := strings.CutPrefix(other, dir)
	return ok && rest != "" && (os.IsPathSeparator(rest[0]) || os.IsPathSeparator(dir[len(dir)-1]))
}

// folders yields the folders between a root and name, from the top.
func (b *below) folders(name string, yield func(dir string) error) error {
	at := b.under(name)
	if at < 0 {
		return nil
	}
	for i := at; i < len(name); i++ {
		if !os.IsPathSeparator(name[i]) {
			continue
		}
		if err := yield(name[:i]); err != nil {
			return err
		}
	}
	return nil
}

// enter looks at each folder between a root and name. What is missing is for the
// operation to say.
func (b *below) enter(name string) error {
	return b.folders(name, func(dir string) error {
		info, err := b.lstat(dir)
		if err == nil && !info.Mode.IsDir() {
			return &NotFolderError{Path: dir, Mode: info.Mode}
		}
		return nil
	})
}

// isRoot reports whether a name is one of the roots.
func (b *below) isRoot(name string) bool {
	for _, p := range b.roots {
		if name == p.root {
			return true
		}
	}
	return false
}

// real is enter for a folder, and looks at it too.
func (b *below) real(name string) error {
	if b.under(name) < 0 {
		return nil
	}
	return b.enter(name + string(filepath.Separator))
}

func (b *below) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if err := b.inside(name, false); err != nil {
		return nil, err
	}
	f, err := openFileBy(b.making(), b.patience, name, flag, perm)
	if err != nil {
		return nil, unmade(name, err)
	}
	return &osFile{f: f}, nil
}

func (b *below) Mkdir(name string, perm fs.FileMode) error {
	if err := b.inside(name, true); err != nil {
		return err
	}
	return unmade(name, b.makeFolder(name, perm))
}

func (b *below) Remove(name string) error {
	if err := b.inside(name, false); err != nil {
		return err
	}
	return b.remove(name)
}

func (b *below) Rename(old, new string) error { return b.bothInside(b.rename, old, new) }

func (b *below) RenameNew(old, new string) error { return b.bothInside(b.renameNew, old, new) }

func (b *below) Exchange(one, two string) error { return b.bothInside(b.exchange, one, two) }

func (b *below) Link(old, new string) error { return b.bothInside(b.link, old, new) }

// bothInside is an operation on two names that must be inside.
func (b *below) bothInside(op func(one, two string) error, one, two string) error {
	if err := b.inside(one, false); err != nil {
		return err
	}
	if err := b.inside(two, false); err != nil {
		return err
	}
	return op(one, two)
}

// Stat guards the way only where it is longer than one folder. A store looks at the
// file of each memory, and what a Stat tells of one in a linked folder leads nowhere:
// nothing is opened, moved or removed there.
func (b *below) Stat(name string) (Info, error) {
	if err := b.inside(name, true); err != nil {
		return Info{}, err
	}
	if at := b.under(name); at >= 0 {
		folders := 0
		for i := at; i < len(name); i++ {
			if os.IsPathSeparator(name[i]) {
				folders++
			}
		}
		if folders > 1 {
			return b.stat(name)
		}
	}
	info, err := b.lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a loop of links, for one
		if eerr := b.enter(name); eerr != nil {
			return Info{}, eerr
		}
	}
	return info, err
}

func (b *below) ReadDir(name string) ([]string, error) {
	if err := b.inside(name, true); err != nil {
		return nil, err
	}
	if b.isRoot(name) {
		name = throughLink(name)
	}
	return readDirBy(b.opening(), name)
}

// ReadTypes implements TypeReader.
func (b *below) ReadTypes(name string) ([]Entry, error) {
	if err := b.inside(name, true); err != nil {
		return nil, err
	}
	if b.isRoot(name) {
		name = throughLink(name)
	}
	return readTypesBy(b.opening(), name)
}

func (b *below) SyncDir(name string) error {
	if err := b.inside(name, true); err != nil {
		return err
	}
	if err := b.real(name); err != nil {
		return err
	}
	return b.syncDir(name)
}

func (b *below) OpenLock(name string, perm fs.FileMode) (Lock, error) {
	if err := b.inside(name, false); err != nil {
		return nil, err
	}
	l, err := openLockBy(b.enter, b.making(), b.patience, name, perm)
	return l, unmade(name, err)
}

func (b *below) OpenShared(name string, create bool, perm fs.FileMode) (Shared, error) {
	if err := b.inside(name, false); err != nil {
		return nil, err
	}
	s, err := openSharedBy(b.making(), b.patience, name, create, perm)
	return s, unmade(name, err)
}

func (b *below) OpenBarrier(name string) (Barrier, error) {
	if err := b.inside(name, true); err != nil {
		return nil, err
	}
	if err := b.real(name); err != nil {
		return nil, err
	}
	barrier, err := openBarrier(b.opening(), name)
	if err != nil {
		return nil, pathError("barrier", name, err)
	}
	return barrier, nil
}

// Flags implements FlagReader where the operating system has them.
func (b *below) Flags(name string) (Flags, error) {
	if err := b.inside(name, true); err != nil {
		return Flags{}, err
	}
	return FlagsOf(b.osFS, name), nil
}

// EnterError is the *NotFolderError in err, nil when there is none: a link or something
// else is in the place of a folder.
func EnterError(err error) *NotFolderError {
	var e *NotFolderError
	if errors.As(err, &e) {
		return e
	}
	return nil
}
