package engine

import (
	"context"
	"path/filepath"
	"slices"
	"sync"

	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// purged caches the list of purged documents and versions.
type purged struct {
	mu      sync.Mutex
	table   *purgefile.Table // the list; nil: nothing was read
	changes uint64           // value of state.State.PurgeChanges when table was read
	file    vfs.Info         // file information of wal/purges when table was read
}

// purgesFile returns the store's file wal/purges.
func (eng *Engine) purgesFile() *purgefile.File { return purgefile.New(eng.env.FS, eng.env.Dir) }

// Purged returns the list of documents and versions that are known to be purged or redacted in the store. The
// caller must not change it.
func (eng *Engine) Purged() (*purgefile.Table, error) {
	if eng.log == nil { // the log is being opened
		c, err := eng.purgesFile().Read()
		return c.Rows, err
	}
	if eng.log.Features()&wal.FeaturePurges == 0 {
		return new(purgefile.Table), nil
	}
	p := &eng.purged
	p.mu.Lock()
	defer p.mu.Unlock()
	changes := eng.state.PurgeChanges() // first: rows that leave the state are in the file by then
	info, err := eng.env.FS.Stat(eng.purgesFile().Path())
	if err != nil {
		info = vfs.Info{}
	}
	if p.table != nil && p.changes == changes && p.file.Size == info.Size && p.file.Mtime.Equal(info.Mtime) &&
		p.file.Ino == info.Ino {
		return p.table, nil
	}
	recent, changes := eng.state.Purges()
	t, _, err := eng.readPurges(recent)
	if err != nil {
		return nil, err
	}
	p.table, p.changes, p.file = t, changes, info
	return t, nil
}

// readPurges reads wal/purges, the list of purged documents and versions, and adds the rows in recent, which this
// process has applied from the log. The second result has the lines of the file that cannot be read. If there are any,
// readPurges also reads the entries that log and archive still have.
func (eng *Engine) readPurges(recent []purgefile.Row) (*purgefile.Table, [][]byte, error) {
	f := eng.purgesFile()
	c, err := f.Read()
	if err != nil {
		return nil, nil, eng.env.IOError("reading", f.Path(), err)
	}
	if !c.Whole() {
		// Unreadable entries are skipped: verify reports them.
		_ = state.PastPurges(context.Background(), eng.log.Past(), 0, eng.log.Durable(), c.Rows.Add)
	}
	for _, r := range recent {
		r.Store = eng.log.UUID()
		c.Rows.Add(r)
	}
	return c.Rows, c.Damaged, nil
}

// CommitPurge commits log entries that name the purged documents. The store must have the feature wal.FeaturePurges.
func (eng *Engine) CommitPurge(ctx context.Context, rows []purgefile.Row) error {
	for part := range slices.Chunk(rows, purgefile.MostRows) {
		line, err := purgefile.Line(part)
		if err != nil {
			return err
		}
		value, inflated := eng.codec.Encode(nil, &record.Record{Line: line})
		if _, err := eng.Append(ctx, &wal.Batch{
			Entries: []wal.Entry{{Key: state.PurgeKey, Kind: record.KindPurge, Value: value, Inflated: inflated}},
			Frees:   true,
		}); err != nil {
			return err
		}
	}
	return nil
}

// SavePurges writes to wal/purges, durably, the rows of the purges below the log position end. The caller calls
// SavePurges before it writes an index up to end: once an index covers the entries of the rows, the log may
// release the entries. The caller holds flush.lock, or no other process has the store open.
func (eng *Engine) SavePurges(end wal.LSN) error {
	if eng.log.Features()&wal.FeaturePurges == 0 {
		return nil
	}
	recent, _ := eng.state.Purges()
	if recent = slices.DeleteFunc(recent, func(r purgefile.Row) bool { return r.Since >= end }); len(recent) == 0 {
		return nil
	}
	t, damaged, err := eng.readPurges(recent)
	if err != nil {
		return err
	}
	return eng.writePurges(t, damaged, end, "purges."+eng.token)
}

// writePurges rewrites wal/purges with the rows of t and the rows in damaged. It omits the rows of this store at
// or above the log position end: either the log still has the entries of these rows, or the rows are from a log
// that was later replaced by an older copy. temp is the name of the temporary file.
func (eng *Engine) writePurges(t *purgefile.Table, damaged [][]byte, end wal.LSN, temp string) error {
	own := eng.log.UUID()
	list := slices.DeleteFunc(t.Sorted(), func(r purgefile.Row) bool { return r.Store == own && r.Since >= end })
	f := eng.purgesFile()
	err := f.Write(list, damaged, filepath.Join(eng.env.Dir, "tmp", temp), eng.env.FileMode)
	return eng.env.IOError("writing", f.Path(), err)
}

// RestorePurges writes wal/purges of a restored store. The file lists the purges of the stores from which the restored
// store descends.
func (eng *Engine) RestorePurges(list []purgefile.Row) error {
	if len(list) == 0 {
		return nil
	}
	f := eng.purgesFile()
	temp := filepath.Join(eng.env.Dir, "tmp", "purges.new")
	return eng.env.IOError("writing", f.Path(), f.Write(list, nil, temp, eng.env.FileMode))
}

// FinishRedactions records in wal/purges that a purge has overwritten all copies of the redacted versions. The
// purge ended at the log position ended. The caller holds flush.lock, and wal/purges already has rows for these
// versions.
func (eng *Engine) FinishRedactions(versions map[uint64]bool, ended wal.LSN) error {
	f := eng.purgesFile()
	c, err := f.Read()
	if err != nil {
		return eng.env.IOError("reading", f.Path(), err)
	}
	temp := filepath.Join(eng.env.Dir, "tmp", "purges."+eng.token)
	err = f.Write(c.Rows.Finish(eng.log.UUID(), versions, ended), c.Damaged, temp, eng.env.FileMode)
	return eng.env.IOError("writing", f.Path(), err)
}

// ToOverwrite returns the redactions whose versions are not overwritten yet.
func (eng *Engine) ToOverwrite() ([]purgefile.Row, error) {
	t, err := eng.Purged()
	if err != nil {
		return nil, err
	}
	return t.Pending(eng.log.UUID()), nil
}
