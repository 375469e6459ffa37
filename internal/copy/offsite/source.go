package offsite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote/sender"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
)

// Source gives a sender access to the log and to snapshots of an open store. It implements sender.Source.
type Source struct {
	s backup.Source

	mu   sync.Mutex
	read stretch // part of the log that is known to have no gap
}

// stretch is the part of a log from the mark from to the mark to. The field of identifies the log.
type stretch struct {
	of       past.ID
	from, to past.Mark
}

var _ sender.Source = (*Source)(nil)

// New returns a Source for the open store s.
func New(s backup.Source) *Source { return &Source{s: s} }

// Past returns the past log of the store, archive included.
func (s *Source) Past() *past.Log { return s.s.Log.Past() }

// Durable returns the position up to which the log is durable.
func (s *Source) Durable() segment.LSN { return s.s.Log.Durable() }

// Base returns the mark from which the log is needed to complete a snapshot that begins now.
func (s *Source) Base(ctx context.Context) (past.Mark, error) {
	o, err := s.open(ctx, nil)
	if err != nil {
		return past.Mark{}, err
	}
	return s.base(ctx, &o.checkpoint)
}

// Erased returns a position of the store's log. Before this position, the log had none of the data that later purges
// have erased. Later purges are those that ended after the log position after. Erased returns 0 if no such position is
// known.
func (s *Source) Erased(ctx context.Context, after segment.LSN) (segment.LSN, error) {
	if err := s.s.CatchUp(ctx); err != nil {
		return 0, err
	}
	rows, err := s.s.Purges()
	if err != nil {
		return 0, err
	}
	var t purgefile.Table
	for _, r := range rows {
		t.Add(r)
	}
	return t.Erased(s.s.Log.UUID(), after), nil
}

// opened has the checkpoint of a store, and the files that were opened under flush.lock for a snapshot.
type opened struct {
	checkpoint wal.Checkpoint
	files      []file
}

// file is a file of the store. bytes has its content if the file may change in place; otherwise f is the open file.
type file struct {
	name  string
	bytes []byte
	f     vfs.File
	info  vfs.Info
}

func (o *opened) close() (err error) {
	for _, f := range o.files {
		if f.f != nil {
			err = errors.Join(err, f.f.Close())
		}
	}
	o.files = nil
	return err
}

// replaced reports whether an open file of this name keeps the content that it had when it was opened: the store never
// overwrites such a file, but renames a new file to its name, or appends to it.
func replaced(name string) bool {
	return name == index.BaseName || name == index.DeltaName || name == places.Computed
}

// open reads the checkpoint and opens the named files, under flush.lock. A missing file is left out.
func (s *Source) open(ctx context.Context, names []string) (o *opened, err error) {
	held, err := s.s.Log.LockFlush(ctx)
	if err != nil {
		return nil, err
	}
	defer held.Unlock()
	o = &opened{}
	if o.checkpoint, err = wal.ReadCheckpoint(s.s.FS, s.s.Dir); err != nil {
		return nil, fmt.Errorf("reading the checkpoint: %w", err)
	}
	for _, name := range names {
		f, err := s.file(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("opening %s: %w", name, err), o.close())
		}
		o.files = append(o.files, f)
	}
	return o, nil
}

// file returns the file of the store with the path name. If the store may change the file in place (see replaced), the
// result has its bytes, which must not exceed mostSmall; otherwise the result has the open file.
func (s *Source) file(name string) (f file, err error) {
	at := filepath.Join(s.s.Dir, filepath.FromSlash(name))
	f.name = name
	if f.info, err = s.s.FS.Stat(at); err != nil {
		return f, err
	}
	if !replaced(name) {
		f.bytes, err = vfs.ReadFile(s.s.FS, at, mostSmall)
		return f, err
	}
	if f.f, err = s.s.FS.OpenFile(at, os.O_RDONLY, 0); err != nil {
		return f, err
	}
	if f.info, err = f.f.Stat(); err != nil {
		return f, errors.Join(err, f.f.Close())
	}
	return f, nil
}

// mostSmall is the maximum size of a file that is read under flush.lock.
const mostSmall = 256 << 20

// base returns the mark at the beginning of the oldest segment from which the log has no gap up to the segment of the
// mark "spilled" of a checkpoint.
func (s *Source) base(ctx context.Context, c *wal.Checkpoint) (past.Mark, error) {
	log := s.Past()
	last := log.Geometry.Number(c.Spilled.LSN - 1)
	id, err := log.ID()
	if err != nil {
		return past.Mark{}, err
	}
	oldest, _, _, err := log.Oldest(c.Spilled.LSN)
	if err != nil {
		return past.Mark{}, err
	}
	if oldest >= c.Spilled.LSN {
		return startOf(log, last) // the segment of the mark itself may be damaged: the error names it
	}
	for n := log.Geometry.Number(oldest - 1); n < last; n++ {
		from, err := startOf(log, n)
		if err != nil {
			return past.Mark{}, err
		}
		gap, err := s.gap(ctx, id, from, c.Spilled.LSN)
		if err != nil {
			return past.Mark{}, err
		}
		if gap == nil {
			return from, nil
		}
		if to := gap.To; to > log.Geometry.Start(n) {
			n = max(n, log.Geometry.Number(to-1))
			if to == log.Geometry.Start(log.Geometry.Number(to)) {
				n = max(n, log.Geometry.Number(to)-1)
			}
		}
	}
	return startOf(log, last)
}

// startOf returns the mark that precedes the start frame of a segment: the end of the segment before.
func startOf(log *past.Log, number uint64) (past.Mark, error) {
	st, _, err := log.Start(number)
	if err != nil {
		return past.Mark{}, fmt.Errorf("reading the start of wal/%s: %w", segment.Name(number), err)
	}
	if st.PrevEnd == 0 {
		return past.Mark{LSN: log.Geometry.Start(number)}, nil
	}
	return past.Mark{LSN: st.PrevEnd, Sum: st.PrevSum}, nil
}

// gap returns the first gap of the log in a range, or nil if the range has no gap. It does not read again what an
// earlier call has read without finding a gap.
func (s *Source) gap(ctx context.Context, id past.ID, from past.Mark, to segment.LSN) (*past.GapError, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := stretch{id, from, from}
	if r := &s.read; r.of == id && r.from.LSN <= from.LSN && from.LSN <= r.to.LSN {
		known = *r
	}
	if known.to.LSN >= to {
		return nil, nil
	}
	for p, err := range s.Past().Pieces(ctx, known.to, to) {
		if gap := (*past.GapError)(nil); errors.As(err, &gap) {
			return gap, nil
		}
		if err != nil {
			return nil, err
		}
		known.to = p.To
	}
	s.read = known
	return nil, nil
}

// damaged returns the reason why the files of a store cannot be copied now: damage of the log, or a failed sync. It
// returns nil if they can be copied.
func damaged(log *wal.FileLog) error {
	if d := log.Damage(); d != nil {
		return d
	}
	if log.Notes().Poisoned() {
		return errs.ErrSyncFailed
	}
	return nil
}
