package words

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/build"
)

// Reset implements view.Fold: it builds all segments from the documents, session by session. If the view writes files,
// each segment is written to its file before the next one is built, so that only one segment is in memory. The
// manifest does not list these files yet.
func (w *Words) Reset(ctx context.Context, set *index.Set) error {
	w.begin()
	f := w.eng.ViewFolder(w.of.name())
	names, err := f.Names()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // the next number cannot be determined
	}
	if w.times == filingTimes {
		for name, m := range w.maps { // release the space of the previous files
			delete(w.maps, name)
			_ = m.release()
		}
		for _, name := range stray(f, names) {
			_ = f.FS.Remove(filepath.Join(f.Path, name)) // mostly files of a process that died
		}
	}
	w.next = max(w.of.first(), 1+highest(names)) // the previous files stay until the manifest lists others
	if err = w.rebuild(ctx, set, f); err != nil {
		w.drop(f)
	}
	return err
}

func (w *Words) rebuild(ctx context.Context, set *index.Set, f *view.Folder) error {
	rows := cmp.Or(w.eng.Env().System.WordsRows, mostRows)
	b := w.builder()
	for list, err := range w.documents(ctx, set) {
		if err != nil {
			return err
		}
		for _, docs := range list {
			for _, d := range docs {
				b.Add(d)
			}
			if docs == nil || b.Rows() < rows && b.Size() < mostBytes {
				continue
			}
			put := func() error { return w.addNew(ctx, b) }
			if w.times == filingTimes {
				put = func() error { return w.spill(ctx, f, b) }
			}
			if err := vfs.Guard(put); err != nil {
				return err
			}
		}
	}
	return vfs.Guard(func() error { return w.addNew(ctx, b) })
}

// spill writes the segment that the builder b has made to a new file, and adds the segment to the view.
func (w *Words) spill(ctx context.Context, f *view.Folder, b *build.Builder) error {
	segment, err := b.Writer(ctx)
	if err != nil {
		return err
	}
	return w.file(f, segment.Write, func(seg *words.Segment) (*words.Set, error) { return w.set.With(w.next, seg, nil) })
}

// file writes the view's next segment to its file by calling write, and opens the segment. It replaces the view's
// set by the set that newSet returns for the segment.
func (w *Words) file(f *view.Folder, write func(to func([]byte) error) error,
	newSet func(*words.Segment) (*words.Set, error)) error {
	name := segmentName(w.next)
	w.written = append(w.written, name)
	if err := f.WriteBy(name, write); err != nil {
		return err
	}
	file, err := f.Map(name)
	if err != nil {
		return err
	}
	m := &mapped{m: file}
	m.refs.Add(1)
	if old := w.maps[name]; old != nil {
		_ = old.release()
	}
	w.maps[name] = m
	seg, err := words.OpenSegment(file.Bytes())
	if err != nil {
		return err
	}
	m.sum = hex(seg.Sum())
	set, err := newSet(seg)
	if err != nil {
		return err
	}
	parts := set.Parts()
	parts[len(parts)-1].Name = name
	w.set = set
	w.next++
	return nil
}

// drop empties the view after a failure, and removes the files that this view wrote and that the manifest does not
// list. If Save failed after it had written the manifest, the new manifest may not be durable yet. Then the files of
// the previous manifest stay until the new manifest is durable (see tidy). Only the holder of flush.lock may remove
// files: for any other process, a file that no manifest lists may be one that is being written.
func (w *Words) drop(f *view.Folder) {
	w.begin()
	if w.times != filingTimes {
		return
	}
	w.untidy = true
	names, _ := f.Names()
	gone := stray(f, names)
	for _, name := range w.written {
		if !slices.Contains(gone, name) {
			continue
		}
		if m := w.maps[name]; m != nil {
			delete(w.maps, name)
			_ = m.release()
		}
		_ = f.FS.Remove(filepath.Join(f.Path, name)) // a later round removes what remains
	}
	w.written = nil
}

// tidy removes leftover files, after a Save that failed when its manifest was already written. The caller holds
// flush.lock.
func (w *Words) tidy(f *view.Folder) {
	if f.FS.SyncDir(f.Path) != nil {
		return
	}
	names, _ := f.Names()
	for _, name := range stray(f, names) {
		_ = f.FS.Remove(filepath.Join(f.Path, name))
	}
	w.untidy = false
}

// stray returns those of the given names that are files of segments, or of the states of their rows, and that the
// manifest does not list. If the manifest is missing or damaged, it returns all such files. If the manifest cannot be
// read at the moment, it returns none.
func stray(f *view.Folder, names []string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return filepath.Ext(name) != ".seg" && filepath.Ext(name) != ".st"
	})
	if len(names) == 0 {
		return nil
	}
	b, err := f.Read(manifestName, manifestMost)
	m := &manifest{}
	if err == nil {
		m, err = parseManifest(b)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errs.ErrCorrupt):
		return names
	case err != nil:
		return nil
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(m.Segments,
			func(l listing) bool { return name == segmentName(l.Number) || name == l.State })
	})
}

// highest returns the highest segment number in a list of file names, or 0 if no file name contains a segment
// number.
func highest(names []string) (number uint64) {
	for _, name := range names {
		head, _, _ := strings.Cut(name, ".")
		if n, err := strconv.ParseUint(head, 16, 64); err == nil && len(head) == 16 && n < 1<<62 {
			number = max(number, n)
		}
	}
	return number
}

// chunk is the number of documents that are read at a time. chunkBytes bounds the size of their terms: once it is
// reached, no further document is read.
const (
	chunk      = 256
	chunkBytes = 8 << 20
)

// documents yields the rows of all documents in the index set, with their terms, in batches and session by session. The
// entry of a document that no longer exists is nil. documents reads the next batch while the caller uses the previous
// one.
func (w *Words) documents(ctx context.Context, set *index.Set) iter.Seq2[[][]*words.Doc, error] {
	ans := make([]*analyzer.Analyzer, runtime.GOMAXPROCS(0))
	if w.eng.Env().System.Inline {
		ans = ans[:1]
	}
	for i := range ans {
		ans[i] = w.an.Again()
	}
	read := func(yield func([][]*words.Doc, error) bool) {
		for ids, err := range inChunks(w.of.ids(set)) {
			for more := true; more; more = len(ids) > 0 {
				var docs [][]*words.Doc
				if err == nil {
					docs, err = w.read(ctx, set, ids, ans)
				}
				if !yield(docs, err) || err != nil {
					return
				}
				ids = ids[len(docs):]
			}
		}
	}
	if w.eng.Env().System.Inline {
		return read
	}
	return ahead(read)
}

// ahead yields the values of seq. A goroutine of its own runs seq, so that the next value is computed while the caller
// uses the previous one.
func ahead[T any](seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	type item struct {
		v   T
		err error
	}
	return func(yield func(T, error) bool) {
		items, over := make(chan item), make(chan struct{})
		var wait sync.WaitGroup
		defer wait.Wait()
		defer close(over)
		wait.Go(func() {
			defer close(items)
			for v, err := range seq {
				select {
				case items <- item{v, err}:
				case <-over:
					return
				}
			}
		})
		for i := range items {
			if !yield(i.v, i.err) {
				return
			}
		}
	}
}

// inChunks yields the ids of seq in slices of chunk ids; the last slice is shorter and may be empty. It yields an
// error of seq, and then ends the iteration.
func inChunks(seq iter.Seq2[string, error]) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		var ids []string
		for id, err := range seq {
			if err != nil {
				yield(nil, err)
				return
			}
			if ids = append(ids, id); len(ids) == chunk {
				list := ids
				ids = nil
				if !yield(list, nil) {
					return
				}
			}
		}
		yield(ids, nil)
	}
}

// read reads documents from the start of ids until the size of the documents reaches chunkBytes. It uses one goroutine
// per analyzer.
func (w *Words) read(ctx context.Context, set *index.Set, ids []string,
	ans []*analyzer.Analyzer) ([][]*words.Doc, error) {
	docs, failed := make([][]*words.Doc, len(ids)), make([]error, len(ans))
	var next, bytes atomic.Int64
	some := func(n int) {
		for bytes.Load() < chunkBytes {
			i := int(next.Add(1)) - 1
			if i >= len(ids) {
				return
			}
			if failed[n] = ctx.Err(); failed[n] == nil {
				docs[i], failed[n] = w.readOne(ctx, set, ids[i], ans[n])
			}
			if failed[n] != nil {
				return
			}
			for _, d := range docs[i] {
				bytes.Add(int64(d.Bytes()))
			}
		}
	}
	var wait sync.WaitGroup
	for n := 1; n < len(ans); n++ {
		wait.Go(func() { some(n) })
	}
	some(0)
	wait.Wait()
	return docs[:min(int(next.Load()), len(ids))], errors.Join(failed...)
}

// readOne reads the version of a document that the index has, and returns the document's rows with their terms. If
// neither the document's file nor the log has that version, the result is a row without words.
func (w *Words) readOne(ctx context.Context, set *index.Set, id string, an *analyzer.Analyzer) ([]*words.Doc, error) {
	b, ok, err := set.Get(nil, w.of.kind(w.eng).Section, id)
	if err != nil || !ok {
		return nil, err
	}
	line, err := index.ParseLine(b)
	if err != nil {
		return nil, fmt.Errorf("%w: the index line of %s is invalid: %w", errs.ErrCorrupt, human.Quote(id), err)
	}
	give, err := w.eng.Codec().Take(ctx, decodedTimes*line.Size)
	if err != nil {
		return nil, err
	}
	defer give()
	docs, err := w.rowsOf(ctx, id, &line)
	for _, d := range docs {
		d.Analyse(an)
	}
	return docs, err
}

func (w *Words) rowsOf(ctx context.Context, id string, line *index.Entry) ([]*words.Doc, error) {
	kind := w.of.kind(w.eng)
	v, err := w.eng.Read(ctx, kind, id, state.Place{Version: line.Version, Entry: *line}, true)
	if err != nil {
		found, ok := w.eng.FromLog(ctx, kind, id, line.Version)
		switch {
		case ctx.Err() != nil, errors.Is(err, errs.ErrClosed):
			return nil, err
		case ok:
			v = found
		case vfs.IsStarved(err), vfs.IsUnopened(err): // it would have no words permanently
			return nil, err
		default:
			return w.unread(id, line, line.Version), nil
		}
	}
	return w.decode(id, v.Doc, line, line.Version), nil
}
