package words

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/wal"
)

// The names and limits of the files; see the package comment.
const (
	manifestName  = "manifest.json"
	manifestMost  = 16 << 20
	stateMost     = 64 << 20
	formatFirst   = 1 // format of manifests without a version of the terms
	formatVersion = 2
	loadTries     = 8 // maximum number of attempts while other processes replace the files
)

type manifest struct {
	Format   int       `json:"format"`
	LSN      uint64    `json:"lsn"`
	Sum      uint64    `json:"sum"`
	Language string    `json:"language"`
	Fields   string    `json:"fields,omitempty"`
	Terms    int       `json:"terms,omitempty"`
	Cut      int       `json:"cut,omitempty"`
	Next     uint64    `json:"next"`
	Segments []listing `json:"segments"`
	Check    string    `json:"check,omitempty"`
}

type listing struct {
	Number uint64 `json:"number"`
	Bytes  int    `json:"bytes"`
	Sum    string `json:"sum"`
	State  string `json:"state"`
}

// terms returns the version of the terms in the segments that the manifest lists.
func (m *manifest) terms() int { return cmp.Or(m.Terms, analyzer.FirstTerms) }

// of writes the language of an analyzer and the version of its terms into the manifest. If the version is the first
// one, the manifest gets format 1, which does not record a version.
func (m *manifest) of(an *analyzer.Analyzer) {
	m.Format, m.Language = formatFirst, an.Language()
	if v := an.Version(); v > analyzer.FirstTerms {
		m.Format, m.Terms = formatVersion, v
	}
}

func (m *manifest) encode() ([]byte, error) {
	m.Check = ""
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	m.Check = hex(xxhash.Sum64(b))
	return json.MarshalIndent(m, "", " ")
}

func hex(v uint64) string { return fmt.Sprintf("%016x", v) }

func parseManifest(b []byte) (*manifest, error) {
	m := &manifest{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("%w: %w", errs.ErrCorrupt, err)
	}
	if m.Format > formatVersion {
		return nil, fmt.Errorf("%w: format %d, this program reads up to %d", errs.ErrNewerFormat, m.Format, formatVersion)
	}
	if t := m.terms(); t > analyzer.Terms {
		return nil, fmt.Errorf("%w: terms of version %d, this program reads up to %d", errs.ErrNewerFormat, t, analyzer.Terms)
	}
	check := m.Check
	if _, err := m.encode(); err != nil || m.Check != check {
		return nil, fmt.Errorf("%w: checksum mismatch", errs.ErrCorrupt)
	}
	return m, nil
}

func segmentName(n uint64) string { return hex(n) + ".seg" }

// Load implements view.View: it reads the files of the view. Segments that are mapped already are reused.
func (w *Words) Load(f *view.Folder) (wal.Mark, error) {
	var err error
	for range loadTries {
		var b []byte
		if b, err = f.Read(manifestName, manifestMost); err != nil {
			break
		}
		if w.loaded != nil && bytes.Equal(b, w.loaded) && len(w.pending) == 0 {
			return w.at, nil
		}
		if err = vfs.Guard(func() error { return w.load(f, b) }); err == nil {
			if w.untidy {
				w.tidy(f)
			}
			return w.at, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		err = fmt.Errorf("%w: %w", errs.ErrCorrupt, err) // the manifest lists a missing file
	}
	w.begin()
	if errors.Is(err, errs.ErrCorrupt) {
		err = &errs.CorruptionError{Path: f.Path, Offset: -1, Err: err}
	}
	return wal.Mark{}, err
}

func (w *Words) load(f *view.Folder, b []byte) error {
	m, err := parseManifest(b)
	if err == nil && m.Next > 1<<62 {
		err = fmt.Errorf("%w: the number of the next segment, %d, is too large", errs.ErrCorrupt, m.Next)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", manifestName, err)
	}
	given, err := query.ParseSources(m.Fields)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", manifestName, errs.ErrCorrupt, err)
	}
	from, err := query.ReadSources(given)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", manifestName, errs.ErrCorrupt, err)
	}
	an := w.an.For(m.Language, m.terms())
	maps := map[string]*mapped{}
	give := func(list map[string]*mapped) {
		for name, m := range list {
			if w.maps[name] != m {
				_ = m.release()
			}
		}
	}
	if m.Cut != w.of.cut() {
		return fmt.Errorf("%s: %w: made by version %d of the rules for splitting documents, not by version %d",
			manifestName, errs.ErrCorrupt, m.Cut, w.of.cut())
	}
	var parts []*words.Part
	for _, l := range m.Segments {
		p, err := w.part(f, &l, maps)
		if err == nil && l.Number < w.of.first() {
			err = fmt.Errorf("%s: %w: the segment has number %d, but the numbers of this view begin at %d", p.Name,
				errs.ErrCorrupt, l.Number, w.of.first())
		}
		if err == nil && l.Number >= m.Next {
			err = fmt.Errorf("%s: %w: the number %d of the segment is not below the number of the next segment, %d",
				p.Name, errs.ErrCorrupt, l.Number, m.Next)
		}
		if err == nil && p.Seg.Print != an.Print() {
			err = fmt.Errorf("%s: %w: made by an analyzer of words with fingerprint %x, not %x",
				p.Name, errs.ErrCorrupt, p.Seg.Print, an.Print())
		}
		if err != nil {
			give(maps)
			return err
		}
		parts = append(parts, p)
	}
	set, err := words.SetOf(parts)
	if err != nil {
		give(maps)
		return err
	}
	old := w.maps
	w.begin()
	w.an, w.sources, w.set, w.next, w.maps = an, from, set, m.Next, maps
	w.loaded, w.at = bytes.Clone(b), wal.Mark{LSN: m.LSN, Sum: m.Sum}
	for name, m := range old {
		if maps[name] != m {
			_ = m.release()
		}
	}
	return nil
}

// mappedLeast is the size in bytes from which on a segment's file is mapped. Smaller files, of which there are always
// some, are read into memory instead.
const mappedLeast = 64 << 10

// read is the content of a small segment file that was read into memory. It is used in place of a mapping of the file.
type read []byte

func (r read) Bytes() []byte { return r }
func (r read) Close() error  { return nil }

func mapOrRead(f *view.Folder, name string, size int) (vfs.Mapping, error) {
	if size >= mappedLeast {
		return f.Map(name)
	}
	b, err := f.Read(name, mappedLeast)
	return read(b), err
}

// part opens the file of a segment and the file with the state of the segment's rows. It records the mapped file in
// maps.
func (w *Words) part(f *view.Folder, l *listing, maps map[string]*mapped) (*words.Part, error) {
	name := segmentName(l.Number)
	if maps[name] != nil {
		return nil, fmt.Errorf("%s: %w: lists segment %d twice", manifestName, errs.ErrCorrupt, l.Number)
	}
	m := w.maps[name]
	if m == nil || m.sum != l.Sum { // after a rebuild another segment may have the name
		file, err := mapOrRead(f, name, l.Bytes)
		if err != nil {
			return nil, err
		}
		m = &mapped{m: file}
		m.refs.Add(1)
	}
	maps[name] = m
	seg, err := words.OpenSegment(m.m.Bytes())
	if err == nil && (len(m.m.Bytes()) != l.Bytes || hex(seg.Sum()) != l.Sum) {
		err = fmt.Errorf("%w: not the segment that the manifest lists", errs.ErrCorrupt)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	m.sum = l.Sum
	var b []byte
	if l.State != "" {
		if !strings.HasPrefix(l.State, hex(l.Number)+".") || strings.ContainsAny(l.State, `/\`) {
			return nil, fmt.Errorf("%s: %w: the name of a state file is invalid: %q", manifestName, errs.ErrCorrupt,
				l.State)
		}
		if b, err = f.Read(l.State, stateMost); err != nil {
			return nil, err
		}
	}
	p, err := words.ReadState(l.Number, seg, b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(l.State, name), err)
	}
	p.Name, p.Live = name, l.State
	return p, nil
}

// Save implements view.View: it writes the content of the view, which is as of mark, to the view's files.
func (w *Words) Save(ctx context.Context, f *view.Folder, mark wal.Mark) error {
	err := vfs.Guard(func() error { return w.save(ctx, f, mark) })
	if err != nil {
		w.drop(f)
	}
	w.written, w.untidy, w.purged = nil, err != nil, false
	return err
}

func (w *Words) save(ctx context.Context, f *view.Folder, mark wal.Mark) error {
	names, err := f.Names()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := w.seal(ctx); err != nil {
		return err
	}
	began := w.eng.Env().Clock()
	merged, err := w.merge(ctx, deadInFiles, func(*words.Part) bool { return true })
	if err != nil && ctx.Err() == nil {
		return err
	}
	// If ctx has ended, a later Save merges the rest. What was sealed is written, so that not every short process has to
	// seal the same changes again.
	took := w.eng.Env().Clock().Sub(began)
	m := &manifest{LSN: mark.LSN, Sum: mark.Sum, Fields: w.sources.Given(), Next: w.next, Cut: w.of.cut(),
		Segments: []listing{}}
	m.of(w.an)
	keep := map[string]bool{manifestName: true}
	for _, p := range w.set.Parts() {
		name, live := p.Name, p.Live
		if name == "" {
			name = segmentName(p.ID)
			w.written = append(w.written, name)
			if err := f.Write(name, p.Seg.Bytes()); err != nil {
				return err
			}
		}
		if b := p.State(); b != nil && live == "" {
			live = hex(p.ID) + "." + hex(mark.LSN) + ".st"
			w.written = append(w.written, live)
			if err := f.Write(live, b); err != nil {
				return err
			}
		}
		m.Segments = append(m.Segments, listing{Number: p.ID, Bytes: p.Seg.Size(), Sum: hex(p.Seg.Sum()), State: live})
		keep[name], keep[live] = true, true
	}
	b, err := m.encode()
	if err != nil {
		return err
	}
	if err := f.Write(manifestName, b); err != nil {
		return err
	}
	for _, name := range names {
		if ext := filepath.Ext(name); !keep[name] && (ext == ".seg" || ext == ".st" || w.purged) {
			err := f.FS.Remove(filepath.Join(f.Path, name)) // if the file is in use, a later round removes it
			if err != nil && w.purged {
				return err
			}
		}
	}
	if w.purged {
		if err := f.FS.SyncDir(f.Path); err != nil {
			return err
		}
	}
	if merged > 0 {
		w.eng.Env().Event(env.Event{Kind: env.EventMerged, Path: w.of.folder(), LSN: mark.LSN,
			Count: merged, Took: took})
	}
	// What was written is read from the files from now on.
	return w.load(f, b)
}
