package words_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/view/words"
	inverted "github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// limitedContext is a context that ends when Err was called a number of times.
type limitedContext struct {
	context.Context
	left atomic.Int64
}

func (c *limitedContext) Err() error {
	if c.left.Add(-1) < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// logged returns an engine whose log has n memories, and the entries of that log.
func logged(t *testing.T, n int) (p *parts.Parts, entries []wal.Entry) {
	t.Helper()
	p = parts.New(t, t.TempDir())
	for i := range n {
		p.Put(t, memstore.Memory{ID: fmt.Sprintf("m%02d", i), Content: fmt.Sprint("boat number", i)})
	}
	for e, err := range p.Engine.Log().Past().Entries(t.Context(), wal.Mark{}, p.Engine.Log().Durable()) {
		if err != nil {
			t.Fatal(err)
		}
		e.Value = append([]byte(nil), e.Value...)
		entries = append(entries, e)
	}
	return p, entries
}

// TestSaveEnds: a view that has many changes to index ends its Save when the context ends, at each moment of the work,
// and a later one has all changes. Otherwise a store that must close within a time limit would take seconds longer.
func TestSaveEnds(t *testing.T) {
	t.Parallel()
	const n = 40
	p, entries := logged(t, n)
	folder := p.Engine.ViewFolder(words.Name)
	for most := int64(0); ; most++ {
		v := words.New(p.Engine)
		for i := range entries {
			if err := v.Apply(t.Context(), nil, &entries[i]); err != nil {
				t.Fatal(err)
			}
		}
		ctx := &limitedContext{Context: t.Context()}
		ctx.left.Store(most)
		err := v.Save(ctx, folder, wal.Mark{LSN: 1})
		if err == nil {
			if most < n {
				t.Errorf("Save of %d changes checked its context only %d times", n, most)
			}
			if rows := rowsIn(t, folder); rows != n {
				t.Errorf("%d rows, want %d", rows, n)
			}
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended after %d checks: %v", most, err)
		}
		if cerr := v.Close(); cerr != nil {
			t.Error(cerr)
		}
		if err == nil {
			return
		}
		if names, err := folder.Names(); err == nil && len(names) > 0 {
			t.Fatalf("ended after %d checks, Save left the files %v", most, names)
		}
	}
}

// TestSaveLeavesTheMerge: a Save whose time ends while it merges segments still writes what it has sealed. A later Save
// merges them.
func TestSaveLeavesTheMerge(t *testing.T) {
	t.Parallel()
	const n = 8 // so many segments of one row are merged
	p, entries := logged(t, n)
	folder := p.Engine.ViewFolder(words.Name)
	save := func(ctx context.Context, i int) error {
		v := words.New(p.Engine)
		if i > 0 {
			if _, err := v.Load(folder); err != nil {
				t.Fatal(err)
			}
		}
		for ; i < len(entries); i++ {
			if err := v.Apply(t.Context(), nil, &entries[i]); err != nil {
				t.Fatal(err)
			}
			if i < len(entries)-1 {
				if err := v.Save(t.Context(), folder, wal.Mark{LSN: uint64(i) + 1}); err != nil {
					t.Fatal(err)
				}
			}
		}
		err := v.Save(ctx, folder, wal.Mark{LSN: uint64(len(entries))})
		return errors.Join(err, v.Close())
	}
	ctx := &limitedContext{Context: t.Context()}
	err := save(ctx, 0)
	for most := int64(1); errors.Is(err, context.DeadlineExceeded) && most < 100; most++ {
		ctx.left.Store(most)
		err = save(ctx, len(entries)-1)
	}
	if err != nil {
		t.Fatal(err)
	}
	if rows, segments := rowsIn(t, folder), segmentsIn(t, folder); rows != n || segments != n {
		t.Errorf("%d rows in %d segments, want %d in as many", rows, segments, n)
	}
	if err := save(t.Context(), len(entries)); err != nil {
		t.Fatal(err)
	}
	if rows, segments := rowsIn(t, folder), segmentsIn(t, folder); rows != n || segments != 1 {
		t.Errorf("%d rows in %d segments after a Save with time, want %d in 1", rows, segments, n)
	}
}

// segmentsIn returns the number of segments in a folder.
func segmentsIn(t *testing.T, folder *view.Folder) (n int) {
	t.Helper()
	names, err := folder.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if filepath.Ext(name) == ".seg" {
			n++
		}
	}
	return n
}

// rowsIn returns the number of rows in the segments of a folder.
func rowsIn(t *testing.T, folder *view.Folder) (rows int) {
	t.Helper()
	names, err := folder.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if filepath.Ext(name) != ".seg" {
			continue
		}
		b, err := folder.Read(name, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		seg, err := inverted.OpenSegment(b)
		if err != nil {
			t.Fatal(err)
		}
		rows += seg.Rows
	}
	return rows
}
