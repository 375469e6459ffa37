package varve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// fileLimit is the largest file that is read as a document, whatever the limit
// for new ones is by now.
const fileLimit = 256 << 20

// storedLimits are for reading what is stored: today's limits are for writing.
var storedLimits = memstore.Limits{MemoryBytes: fileLimit, IDBytes: 1024, Depth: 1000, EmbeddingDim: 1 << 20}

// rebuildIndex makes a new base from the files. The versions that they had are
// not in them; each gets one that no frame can have (LSNs are multiples of 8),
// so a condition on an old version fails and never falsely holds.
//
// Files that cannot be read are left where they are and reported.
func (st *Store) rebuildIndex(ctx context.Context, start wal.Start) (*index.Set, int, error) {
	version := start.Spilled - 1
	var list []index.Change
	for e, err := range st.memories.Scan() {
		if errors.Is(err, fs.ErrNotExist) {
			break // no such folder yet
		}
		if err != nil {
			st.problem(err)
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if e.Kind != docfile.Document {
			continue
		}
		m, _, err := st.parseFile(e.Name)
		if err != nil {
			st.problem(err)
			continue
		}
		list = append(list, index.Change{Section: index.Memories, ID: m.ID, Version: version})
	}
	id := uuid.UUID(start.UUID)
	to := index.Target{
		FS: st.fs, Dir: st.dir, Temp: filepath.Join(st.dir, "tmp", "index."+st.token), Perm: st.o.FileMode,
		Store: id.String(), LSN: start.Spilled, Now: st.o.Clock(),
	}
	empty := index.Empty(start.Spilled)
	defer empty.Release()
	_, err := index.WriteBase(empty, to, index.Changes{List: list, Line: func(dst []byte, c index.Change) ([]byte, error) {
		m, doc, err := st.parseFile(docfile.FileName(c.ID))
		if err != nil {
			return nil, err
		}
		line, err := m.Line(doc.bytes)
		if err != nil {
			return nil, err
		}
		return index.Finish(dst, line, c.Version, doc.mtime.UnixMicro())
	}})
	if err != nil {
		return nil, 0, st.ioError("writing", filepath.Join(st.dir, index.BaseName), err)
	}
	set, err := index.Load(st.fs, st.dir, index.Want{Store: id.String(), Spilled: start.Spilled}, nil)
	return set, len(list), err
}

// document is a file's bytes and time.
type document struct {
	bytes []byte
	mtime time.Time
}

// parseFile reads the memory in a file, which must be in the place of its id.
func (st *Store) parseFile(name string) (*Memory, document, error) {
	data, info, err := st.memories.Read(name, fileLimit)
	if err != nil {
		return nil, document{}, fmt.Errorf("reading memories/%s: %w", name, err)
	}
	m, err := memstore.Decode(data, memstore.DecodeOptions{Limits: storedLimits, Location: st.o.NaiveTimes})
	if err == nil && docfile.FileName(m.ID) != name {
		err = fmt.Errorf("%w: it holds the id %s, whose file is %s", ErrInvalid, quote(m.ID), docfile.FileName(m.ID))
	}
	if err != nil {
		return nil, document{}, &CorruptionError{Path: "memories/" + name, Offset: -1, Err: err}
	}
	if m.CreatedAt.IsZero() {
		m.CreatedAt = info.Mtime
	}
	if m.UpdatedAt.IsZero() {
		m.UpdatedAt = info.Mtime
	}
	return m, document{data, info.Mtime}, nil
}

// problem notes something for the OpenReport.
func (st *Store) problem(err error) {
	st.report.mu.Lock()
	defer st.report.mu.Unlock()
	if len(st.report.Problems) < maxProblems {
		st.report.Problems = append(st.report.Problems, err)
	}
	st.report.ProblemCount++
}
