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

// Below returns the file system for a store, a backup, or another folder root. An operation on a path below root
// follows no symbolic link: if the path has one, the operation fails with a *NotFolderError. root itself may be
// reached through links, and paths outside root are not checked.
//
// On Linux and darwin the parent folder of an operation is opened first, without following links, and the operation
// works on that descriptor: replacing the folder by a link in between has no effect. The same holds for files that are
// opened. On Windows each folder is checked before the operation.
//
// Every caller that gets its FS from here is covered, whatever paths it builds: no check can be forgotten.
//
// If fsys is a wrapper that has a method Below, that method returns the result: the same wrapper around the file
// system that Below returns for the inner one. Any other FS that is not a file system of the operating system is
// returned unchanged (vfs/crash has no links).
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

// Only does the same as Below for each of roots, and refuses all other paths with an *OutsideError, so that a path
// built from the contents of a file cannot lead elsewhere. The folders above a root may be inspected, created and
// synced, which is needed to create the root and to make its name durable. literal is one more root, or "" for none.
// It may be a folder above the other roots: it counts only for paths that are below none of them.
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
	case !os.IsPathSeparator(root[len(root)-1]): // as in "/"
		head += string(filepath.Separator)
	}
	b.roots = append(b.roots, place{root: root, head: head, literal: literal})
}

// below is osFS, and checks the paths below roots before it opens them. Stat checks less, see its comment. Volume and
// Host open nothing, so they check nothing.
type below struct {
	osFS
	roots    []place
	only     bool
	ways     ways
	patience *patience   // limits the waits for leases; nil: that of osFS
	manners  sync.Map    // rules for what is created in a folder, *manners by path of the folder
	links    atomic.Bool // a root is reached through a link, or the system cannot refuse links itself
}

type place struct {
	root, head string // root is a path as it was given, head the prefix of the paths of everything below it
	literal    bool
	held       *heldFolder // handle of the root; nil: the root is opened by its path each time
}

// offsetBelowRoot returns the offset in name at which the part below a root begins, or -1 if name is below no
// root. If name is below several roots, the topmost root counts, because everything below it is guarded. The root
// literal of Only counts only if name is below no other root.
func (b *below) offsetBelowRoot(name string) int {
	at, _ := b.place(name)
	return at
}

// place returns the offset that offsetBelowRoot returns, and the handle of the root that counts for name. held is
// nil if this root has no handle.
func (b *below) place(name string) (off int, held *heldFolder) {
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

// anchor returns the handle of the root that is name or contains name, and the path of name relative to that root.
// held is nil if this root has no handle, or if there is no such root.
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

// upward reports whether path, which is relative to a root, leads to a folder above the root because it consists of
// the elements "." and ".." only.
func upward(path string) bool {
	dots := func(r rune) bool { return r == '.' || r < 0x80 && os.IsPathSeparator(uint8(r)) }
	return strings.HasPrefix(path, ".") && strings.TrimLeftFunc(path, dots) == "" && climbs(path)
}

// checkInside returns the error for a path that Only refuses, and nil for any other path. If above is true, a
// folder above a root is also allowed.
func (b *below) checkInside(name string, above bool) error {
	at := b.offsetBelowRoot(name)
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

// climbs reports whether a path has an element "..".
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

// isAbove reports whether a folder contains another. Both are absolute paths.
func isAbove(dir, other string) bool {
	rest, ok := strings.CutPrefix(other, dir)
	return ok && rest != "" && (os.IsPathSeparator(rest[0]) || os.IsPathSeparator(dir[len(dir)-1]))
}

// folders calls yield for the folders on the path from a root to name, from the top, until yield returns an error.
func (b *below) folders(name string, yield func(dir string) error) error {
	at := b.offsetBelowRoot(name)
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

// enter returns a *NotFolderError if a folder on the path from a root to name is not a folder, for example if it is a
// link. It returns nil for a missing folder, because the operation itself reports that.
func (b *below) enter(name string) error {
	return b.folders(name, func(dir string) error {
		info, err := b.lstat(dir)
		if err == nil && !info.Mode.IsDir() {
			return &NotFolderError{Path: dir, Mode: info.Mode}
		}
		return nil
	})
}

// isRoot reports whether name is one of the roots.
func (b *below) isRoot(name string) bool {
	for _, p := range b.roots {
		if name == p.root {
			return true
		}
	}
	return false
}

// real returns a *NotFolderError if name, or a folder on the path from a root to name, is not a folder.
func (b *below) real(name string) error {
	if b.offsetBelowRoot(name) < 0 {
		return nil
	}
	return b.enter(name + string(filepath.Separator))
}

func (b *below) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if err := b.checkInside(name, false); err != nil {
		return nil, err
	}
	f, err := openFileBy(b.making(), b.patience, name, flag, perm)
	if err != nil {
		return nil, unmade(name, err)
	}
	return &osFile{f: f}, nil
}

func (b *below) Mkdir(name string, perm fs.FileMode) error {
	if err := b.checkInside(name, true); err != nil {
		return err
	}
	return unmade(name, b.makeFolder(name, perm))
}

func (b *below) Remove(name string) error {
	if err := b.checkInside(name, false); err != nil {
		return err
	}
	return b.remove(name)
}

func (b *below) Rename(old, new string) error { return b.bothInside(b.rename, old, new) }

func (b *below) RenameNew(old, new string) error { return b.bothInside(b.renameNew, old, new) }

func (b *below) Exchange(one, two string) error { return b.bothInside(b.exchange, one, two) }

func (b *below) Link(old, new string) error { return b.bothInside(b.link, old, new) }

// bothInside calls op with two names if Only allows both of them. Otherwise it returns the error for the refused name.
func (b *below) bothInside(op func(one, two string) error, one, two string) error {
	if err := b.checkInside(one, false); err != nil {
		return err
	}
	if err := b.checkInside(two, false); err != nil {
		return err
	}
	return op(one, two)
}

// Stat checks the path only if it has more than one folder below the root. A store calls Stat for the file of each
// memory, and information about a file in a linked folder does no harm: nothing is opened, moved or removed there.
func (b *below) Stat(name string) (Info, error) {
	if err := b.checkInside(name, true); err != nil {
		return Info{}, err
	}
	if at := b.offsetBelowRoot(name); at >= 0 {
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
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // for example a loop of links
		if eerr := b.enter(name); eerr != nil {
			return Info{}, eerr
		}
	}
	return info, err
}

func (b *below) ReadDir(name string) ([]string, error) {
	if err := b.checkInside(name, true); err != nil {
		return nil, err
	}
	if b.isRoot(name) {
		name = throughLink(name)
	}
	return readDirBy(b.opening(), name)
}

// ReadTypes lists a folder with the types of its entries; it implements TypeReader.
func (b *below) ReadTypes(name string) ([]Entry, error) {
	if err := b.checkInside(name, true); err != nil {
		return nil, err
	}
	if b.isRoot(name) {
		name = throughLink(name)
	}
	return readTypesBy(b.opening(), name)
}

func (b *below) SyncDir(name string) error {
	if err := b.checkInside(name, true); err != nil {
		return err
	}
	if err := b.real(name); err != nil {
		return err
	}
	return b.syncDir(name)
}

func (b *below) OpenLock(name string, perm fs.FileMode) (Lock, error) {
	if err := b.checkInside(name, false); err != nil {
		return nil, err
	}
	l, err := openLockBy(b.enter, b.making(), b.patience, name, perm)
	return l, unmade(name, err)
}

func (b *below) OpenShared(name string, create bool, perm fs.FileMode) (Shared, error) {
	if err := b.checkInside(name, false); err != nil {
		return nil, err
	}
	s, err := openSharedBy(b.making(), b.patience, name, create, perm)
	return s, unmade(name, err)
}

func (b *below) OpenBarrier(name string) (Barrier, error) {
	if err := b.checkInside(name, true); err != nil {
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

// Flags returns the flags of a file, on systems that have such flags; it implements FlagReader.
func (b *below) Flags(name string) (Flags, error) {
	if err := b.checkInside(name, true); err != nil {
		return Flags{}, err
	}
	return FlagsOf(b.osFS, name), nil
}

// HasACL implements ACLReader.
func (b *below) HasACL(name string) bool {
	return b.checkInside(name, true) != nil || HasACL(b.osFS, name)
}

// EnterError returns the *NotFolderError that err contains, or nil. Such an error means that a path which should lead
// to a folder leads to a link or to another kind of file.
func EnterError(err error) *NotFolderError {
	var e *NotFolderError
	if errors.As(err, &e) {
		return e
	}
	return nil
}
