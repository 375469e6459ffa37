package docfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/vfs"
)

// Options configures a Flusher. Except for required fields, a field with its zero value selects the default.
type Options struct {
	Layout // required
	// required: name in tmp/ that is unique for each open store, also in different processes;
	// [A-Za-z0-9_-]{1,40}
	Token string

	// required: current time, for notes, and for how long files are parked where leases are not supported
	Clock func() time.Time
	// number of goroutines of a round; 0 and 1: the round runs in the caller's goroutine, in order
	Workers int
	// Maximum number of files in a round in which each file is synced by itself. 0 means 64; a negative number: in
	// every round.
	Direct int
	// Unnamed is the least number of changes of a round that creates files without a name. 0 means 16; a negative
	// number: every file has a name from the start.
	Unnamed int
	Pool    int   // maximum number of displaced files that a worker keeps between rounds; 0 means 64
	Limit   int64 // maximum size in bytes of a file that is read to decide whether the store wrote it; 0 means 64 MiB

	// TempFiles is the number of files that a worker creates in one folder before it continues in another; 0 means
	// 65,536.
	TempFiles int
	// Keeps reports whether a purge is running in any process. During a purge no replaced file is reused or removed,
	// because the purge overwrites it. If Keeps is nil, no purge is ever running.
	Keeps func() bool
	// Leaves reports whether a file or folder in tmp/ must not be touched now, because a purge is working on it. If
	// Leaves is nil, all names may be touched.
	Leaves func(name string) bool
	// Places returns the folders of documents. A replaced file from one of them is overwritten only once its removal
	// from that folder is durable.
	Places func() []*Folder
	// InPlace reports whether a file in tmp/ that was never examined is also the file at a document's path, because a
	// power loss kept both names. nil means that no file is.
	InPlace func(info vfs.Info, data func() ([]byte, error)) bool
}

func (o *Options) setDefaults() error {
	if o.FS == nil || o.Root == "" || o.Clock == nil {
		return fmt.Errorf("docfile: FS, Root and Clock are required: %w", errs.ErrInvalid)
	}
	plain := func(r rune) bool {
		return r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	if o.Token == "" || len(o.Token) > 40 || o.Token == parkedFolder ||
		strings.ContainsFunc(o.Token, func(r rune) bool { return !plain(r) }) {
		return &errs.FieldError{Field: "token", Value: human.Quote(o.Token), Limit: "[A-Za-z0-9_-]{1,40}",
			Err: errors.New("must be the name of a folder in tmp/")}
	}
	if o.Workers < 1 {
		o.Workers = 1
	}
	if o.Direct == 0 {
		o.Direct = 64
	}
	if o.Unnamed == 0 {
		o.Unnamed = 16
	}
	if o.Pool <= 0 {
		o.Pool = 64
	}
	if o.Limit <= 0 {
		o.Limit = 64 << 20
	}
	if o.TempFiles <= 0 {
		o.TempFiles = 64 << 10
	}
	return nil
}

// Flusher writes documents into their files. Only the holder of flush.lock calls its methods, one at a time. Between
// two calls another process may hold that lock and empty tmp/. Close and Wipe may also be called without the lock:
// other processes may empty tmp/ meanwhile.
type Flusher struct {
	o          Options
	quarantine *Quarantine
	workers    []*worker
	parked     parkedList
	ready      bool        // the folders of this process in tmp/ exist
	last       bool        // set by Last
	fresh      bool        // this round must not reuse replaced files
	distrust   bool        // a round failed: the next one syncs each file by itself
	noUnnamed  atomic.Bool // the system has no unnamed files

	spares func(c *Change) bool // set by Spare
}

// NewFlusher returns a Flusher. It does not access the disk.
func NewFlusher(o Options) (*Flusher, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	f := &Flusher{o: o, quarantine: NewQuarantine(o.Layout, o.Clock)}
	f.parked.f = f
	for i := range o.Workers {
		w := &worker{f: f, number: strconv.Itoa(i)}
		w.enter(w.number)
		f.workers = append(f.workers, w)
	}
	return f, nil
}

// Distrust prevents the next round from reusing replaced files. Call it before the first round after opening a store
// that was not closed, because the files at the documents' paths may not be those that were written last. After a
// failed round, the Flusher does the same by itself.
func (f *Flusher) Distrust() { f.fresh = true }

// Repeat prepares the next round to repeat part of a failed round: the next round uses new files and syncs each file
// separately. The first round after a failed one does so without Repeat. If several rounds are needed, call Repeat
// before each.
func (f *Flusher) Repeat() { f.fresh, f.distrust = true, true }

// Last sets whether the following rounds are the last ones before Close. If they are, these rounds immediately rename
// the files that they replace to the names under which Close overwrites files. On a file system with one journal, the
// syncs of the round then make these names durable as well, and Close has no files left to rename.
func (f *Flusher) Last(last bool) { f.last = last }

// Spare sets a function that is used while this process purges. The function reports whether the purge does not need
// the file that a change replaces. Such a file is reused, as without a purge, if it is unchanged since the last durable
// round. A file that is deleted is always kept, because it may belong to an interrupted purge. If spare is nil, the
// purge needs all files.
func (f *Flusher) Spare(spare func(c *Change) bool) { f.spares = spare }

// prepare creates this process's folders in tmp/, durably, so that a replaced file is not lost with its folder. prepare
// runs before each round, because another process may have emptied tmp/.
func (f *Flusher) prepare() error {
	for _, w := range f.workers {
		w.moveOn()
		if err := f.o.makeFolder(tempFolder, f.o.Token, w.name); err != nil {
			return err
		}
	}
	f.ready = true
	return nil
}

// keeps reports whether replaced files must be kept because a purge will overwrite them.
func (f *Flusher) keeps() bool { return f.o.Keeps != nil && f.o.Keeps() }

// Wipe overwrites the replaced files that this process keeps for reuse in tmp/, durably, and removes them. The
// documents' own files are durable by then, because a failed round keeps no files for reuse.
func (f *Flusher) Wipe() error {
	var all []error
	for _, w := range f.workers {
		var list []*temp
		for _, path := range w.pool() {
			t, err := w.reopen(path)
			if t != nil {
				list = append(list, t)
			}
			all = append(all, err)
		}
		all = append(all, f.wipe(filepath.Clean(w.dir), list))
	}
	return errors.Join(all...)
}

// leave removes a folder of this process in tmp/ if the folder is empty, and reports whether the folder is gone. First
// it makes the new names of files durable that were parked from this folder.
func (f *Flusher) leave(dir string) bool {
	f.parked.mu.Lock()
	err := f.parked.sync()
	f.parked.mu.Unlock()
	if err == nil {
		if err = f.o.checkFolder(dir); err == nil {
			err = f.o.FS.Remove(dir) // stays while it has a file that waits to be examined
		}
	}
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// Close overwrites and removes the replaced files that this process keeps for reuse in tmp/. During a purge Close
// leaves them to the purge. Parked files stay for the next flusher.
func (f *Flusher) Close() error {
	var all []error
	if !f.keeps() {
		all = append(all, f.Wipe())
	}
	for _, w := range f.workers {
		all = append(all, w.empty())
	}
	if f.ready {
		for _, w := range f.workers {
			w.past = append(w.past, w.name)
			w.leave()
		}
		f.leave(f.o.path(tempFolder, f.o.Token))
	}
	f.ready = false
	return errors.Join(all...)
}
