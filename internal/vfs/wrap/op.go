package wrap

import (
	"context"
	"io/fs"
	"strings"

	"github.com/varve-db/varve/internal/vfs"
)

// Kind is the kind of an operation.
type Kind int

// The kinds of operations.
const (
	Open   Kind = iota // OpenFile without creating or truncating a file
	Create             // OpenFile with O_CREATE or O_TRUNC
	Mkdir
	Remove
	Rename
	RenameNew
	Exchange
	Link
	Stat
	ReadDir
	SyncDir
	OpenLock
	OpenShared
	OpenBarrier
	Volume
	Read
	Write
	Truncate
	Sync
	Datasync
	SetMtime
	SetMode
	Lease
	Unlease
	Map
	Close
	Lock
	TryLock
	Unlock
	Load
	Store
	CompareAndSwap
	Barrier
	OpenDir
	CreateUnnamed
	LinkUnnamed
	kinds
)

func (k Kind) String() string {
	return [kinds]string{
		"open", "create", "mkdir", "remove", "rename", "renamenew", "exchange", "link", "stat", "readdir", "syncdir",
		"openlock", "openshared", "openbarrier", "volume", "read", "write", "truncate", "sync", "datasync", "setmtime",
		"setmode", "lease", "unlease", "map", "close", "lock", "trylock", "unlock", "load", "store", "cas", "barrier",
		"opendir", "createunnamed", "linkunnamed",
	}[k]
}

// Changes reports whether an operation can change what a later boot finds.
func (k Kind) Changes() bool {
	switch k {
	case Create, Mkdir, Remove, Rename, RenameNew, Exchange, Link, OpenLock, OpenShared, CreateUnnamed, LinkUnnamed,
		Write, Truncate, SetMtime, SetMode, Store, CompareAndSwap:
		return true
	}
	return k.Syncs()
}

// Syncs reports whether an operation makes something durable.
func (k Kind) Syncs() bool {
	switch k {
	case SyncDir, Sync, Datasync, Barrier:
		return true
	}
	return false
}

// Op is an operation on the file system.
type Op struct {
	Kind   Kind
	Seq    int    // number of the operation on this FS, from 1
	Path   string // path that the caller has passed
	To     string // the second name of Rename, RenameNew, Exchange, Link
	Off    int64
	Size   int // bytes of a read or write; a hook may lower it
	Length int64
	Flag   int
	Perm   fs.FileMode
	Mode   vfs.Mode
	Word   int
	Value  uint64
	Ctx    context.Context // context of Lock

	wrapper *FS
	site    string
	failer  any // the file or barrier whose FailSync is called
}

// Site returns the place in the source, outside the vfs packages, from which the operation was called:
// "segment/file.go:120".
func (o *Op) Site() string {
	if o.site == "" {
		o.site = o.wrapper.sites.caller()
	}
	return o.site
}

// FailSync makes a Sync, Datasync or Barrier fail with err, and lets a file system that can (vfs/crash) lose the
// unsynced data. For other file systems it just returns err.
func (o *Op) FailSync(err error) error {
	if f, ok := o.failer.(interface{ FailSync(error) error }); ok {
		return f.FailSync(err)
	}
	return err
}

// Hook is called in place of each operation op, and executes the operation by calling call. The operation ends with
// the error that the Hook returns.
type Hook func(op *Op, call func() error) error

// relative returns a path without the prefix root.
func relative(name, root string) string {
	if rest, ok := strings.CutPrefix(name, root); ok {
		if rest = strings.TrimLeft(rest, `/\`); rest != "" {
			return rest
		}
		return "."
	}
	return name
}

// Relative returns Path and To relative to root, with slashes.
func (o *Op) Relative(root string) (path, to string) {
	slash := func(s string) string { return strings.ReplaceAll(relative(s, root), `\`, "/") }
	path = slash(o.Path)
	if o.To != "" {
		to = slash(o.To)
	}
	return path, to
}
