package docfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/vfs"
)

// Options says how a Flusher works. Zero values are right except where noted.
type Options struct {
	Layout        // required
	Token  string // required: unique for each engine, also of different processes; [A-Za-z0-9_-]{1,40}

	Clock   func() time.Time // required: for notes, and for how long files are parked where there are no leases
	Workers int              // goroutines of a round; 0 and 1: inline in the caller's, in order
	Direct  int              // a round of up to so many files syncs each; 0 means 64, negative: all rounds do
	Pool    int              // displaced files that a worker keeps between rounds; 0 means 64
	Limit   int64            // largest file that is read to be judged; 0 means 64 MiB

	// TempFiles is how many files a worker makes in one folder before it goes on in another; 0 means 65,536.
	TempFiles int
	// Keeps reports whether a purge is under way, in whatever process: nothing that is displaced
	// is reused or removed, for the purge overwrites it. nil: never.
	Keeps func() bool
	// Leaves says of a name in tmp/ that it is to be left as it is just now: a purge works
	// there. nil: none is.
	Leaves func(name string) bool
	// Places are the folders that documents stand in: what was displaced from them is
	// overwritten only when that is durable.
	Places func() []*Folder
	// InPlace says of a file in tmp/ that was never looked at that its inode stands in a
	// document's place, under a name that a loss of power has left. nil: none does.
	InPlace func(info vfs.Info, data func() ([]byte, error)) bool
}

func (o *Options) setDefaults() error {
	if o.FS == nil || o.Root == "" || o.Clock == nil {
		return fmt.Errorf("docfile: FS, Root and Clock must be given: %w", errs.ErrInvalid)
	}
	plain := func(r rune) bool {
		return r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	if o.Token == "" || len(o.Token) > 40 || o.Token == parkedFolder ||
		strings.ContainsFunc(o.Token, func(r rune) bool { return !plain(r) }) {
		return &errs.FieldError{Field: "token", Value: human.Quote(o.Token), Limit: "[A-Za-z0-9_-]{1,40}",
			Err: errors.New("names a folder in tmp/")}
	}
	if o.Workers < 1 {
		o.Workers = 1
	}
	if o.Direct == 0 {
		o.Direct = 64
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

// Flusher puts documents into their files. Its methods are for the holder of
// flush.lock, one at a time; between two of them another process may hold that
// lock and empty tmp/. Close and Wipe may be called without it: others may empty
// tmp/ meanwhile.
type Flusher struct {
	o          Options
	quarantine *Quarantine
	workers    []*worker
	parked     parkedList
	ready      bool // the folders are there
	last       bool // see Last
	fresh      bool // no inode may be used again in this round
	distrust   bool // a round failed: each file of the next one is synced by itself

	spares func(c *Change) bool // see Spare
}

// NewFlusher touches nothing on disk.
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

// Distrust keeps the next round from using any inode twice. Call it before the
// first round after an unclean open: what places hold may not be what was
// written last. A failed round does it by itself.
func (f *Flusher) Distrust() { f.fresh = true }

// Repeat says that the next round repeats some of what failed: fresh inodes, and
// each file is synced by itself. The round after one that failed does so by
// itself; call it before each where the repetition takes several.
func (f *Flusher) Repeat() { f.fresh, f.distrust = true, true }

// Last reports whether the rounds that follow are followed by Close: what that one displaces gets the
// name under which it is overwritten at once. The syncs of the round then write this down as
// well, where a file system has one journal, and Close finds nothing left to write.
func (f *Flusher) Last(is bool) { f.last = is }

// Spare says of which changes a purge by this process does not need what they displace, for the rounds
// that follow: files that stand as the last durable round left them are used again, as outside of a
// purge. What is deleted may be of a purge that was cut, and is kept. nil: it needs all.
func (f *Flusher) Spare(of func(c *Change) bool) { f.spares = of }

// prepare makes the folders. They are durable, so that what is displaced into them does not go with
// them. Each time: another process may have emptied tmp/.
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

// keeps reports whether what goes is kept for a purge.
func (f *Flusher) keeps() bool { return f.o.Keeps != nil && f.o.Keeps() }

// Wipe overwrites this engine's pool, durably, and removes it. What stands in the
// places is durable: a round that fails leaves no pool.
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

// leave removes a folder of this engine in which nothing is left, and says whether it is gone. What was parked
// out of it is durable in its new place before that.
func (f *Flusher) leave(dir string) bool {
	f.parked.mu.Lock()
	err := f.parked.sync()
	f.parked.mu.Unlock()
	if err == nil {
		if err = f.o.checkFolder(dir); err == nil {
			err = f.o.FS.Remove(dir) // stays when something waits in it to be looked at
		}
	}
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// Close overwrites and removes this engine's pool; while a purge is under way that does it. Parked
// files stay for the next flusher.
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
