package heal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/journal"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/verify"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// A log with damage in it cannot be mended in place: each frame names the one
// before it. So everything that can be read of it, also behind the damage, goes
// into files and index, and the log begins anew: under its UUID, so that the
// archive stays its history and versions keep their meaning, in a segment above
// every position that was ever given, so that none means two things. In this
// order, so that it may be cut anywhere and run again:
//
//  1. the newest versions above flushed into files, durable; of working memory all
//     that is above spilled
//  2. a new segment, which nothing names yet
//  3. the index, as of that segment's start; or none, and opening makes it from
//     the files, where the damage hides what it would have to know
//  4. the checkpoint, which names the new segment: from here on it is the log
//  5. the old segments: sound ones into the archive, all into quarantine

// renewal is one such beginning.
type renewal struct {
	r   *repairer
	d   *repair.Done
	s   Store
	v   *verify.Run
	log *wal.FileLog
	c   wal.Checkpoint

	attested wal.LSN
	lastTime int64
	newest   map[string]found // above spilled, what can be read
	older    map[string]found // below flushed: what the log holds is the only copy, perhaps
	hashes   map[string][][32]byte
	worked   map[string][]wal.LSN // entries of working memory above spilled, by scope
	gaps     []wal.Gap
	model    index.Model // the newest that an entry tells of
	low      bool        // the new log begins below positions that marks or index name
}

type found struct {
	version wal.LSN
	deleted bool
}

func (r *repairer) newLog(d *repair.Done) error {
	s, err := r.o.Open(r.ctx, true)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	src := s.Source()
	n := &renewal{r: r, d: d, s: s, v: verify.New(r.ctx, src, repair.VerifyOptions{Workers: 1}, nil), log: src.Log,
		newest: map[string]found{}, older: map[string]found{}, hashes: map[string][][32]byte{}, worked: map[string][]wal.LSN{}}
	if n.c, err = wal.ReadCheckpoint(r.o.FS, r.Dir); err != nil {
		return fmt.Errorf("reading the checkpoint: %w", err)
	}
	for _, step := range []func() error{n.read, n.damagedFiles, n.files, n.scopes, n.begin} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// read goes through all frames from spilled on. Up to what is known to have been
// durable it goes on behind damage; beyond that only what links on is in the log.
func (n *renewal) read() error {
	known, err := n.log.Known()
	if err != nil {
		return err
	}
	n.attested = max(n.c.Attested.LSN, known)
	list, _, err := n.log.SegmentFiles()
	if err != nil {
		return err
	}
	var prev wal.Mark
	var batch []wal.Entry
	ended := false
	for i, f := range list {
		if f.Zero || ended {
			continue
		}
		end := framesEnd(n.log, list[i:])
		_, err := n.log.WalkSegment(n.r.ctx, f.Number, prev, end, func(end wal.Mark, e *wal.Entry) error {
			if ended {
				return nil
			}
			prev = end
			if e == nil {
				return nil
			}
			n.lastTime = max(n.lastTime, e.Time.UnixMicro())
			batch = append(batch, wal.Entry{LSN: e.LSN, Time: e.Time, Key: strings.Clone(e.Key), Kind: e.Kind, Delete: e.Delete, Value: slices.Clone(e.Value)})
			if !e.More || e.LSN < n.attested {
				for _, e := range batch {
					n.saw(&e)
				}
				batch = batch[:0]
			}
			return nil
		}, func(g wal.Gap) {
			if errors.Is(g.Err, segment.ErrEnd) && g.To == end {
				return // where the segment's frames end
			}
			if batch = batch[:0]; g.At >= n.attested {
				ended = true
				return
			}
			n.gaps = append(n.gaps, g)
		})
		if err != nil && !places.Gone(err) {
			return err
		}
	}
	n.holes(list)
	return nil
}

// holes adds the segments that are missing between spilled and what was durable.
func (n *renewal) holes(list []wal.SegmentFile) {
	first, _ := n.log.Place(n.c.Spilled.LSN - 1)
	last, _ := n.log.Place(n.attested - 1)
	if newest := verify.NewestSegment(list); last > newest+1 { // a mark may say anything
		n.gaps = append(n.gaps, wal.Gap{At: max(n.c.Spilled.LSN, n.log.SegmentEnd(newest)), To: n.attested, Err: segment.ErrEnd})
		last = newest
	}
	for number := first; number <= last; number++ {
		if !slices.ContainsFunc(list, func(f wal.SegmentFile) bool { return f.Number == number && !f.Zero }) {
			end := n.log.SegmentEnd(number)
			n.gaps = append(n.gaps, wal.Gap{At: end - n.log.SegmentSize(), To: min(end, n.attested), Err: segment.ErrEnd})
		}
	}
}

func (n *renewal) saw(e *wal.Entry) {
	if _, err := state.Check(e); err != nil {
		return // it stays in the segment, in quarantine
	}
	if len(e.Key) > 0 && e.Key[0] == record.Working {
		if e.LSN >= n.c.Spilled.LSN {
			n.worked[e.Key[1:]] = append(n.worked[e.Key[1:]], e.LSN)
		}
		return
	}
	if len(e.Key) > 0 && e.Key[0] == record.Model {
		// Each stands for those before it; what cannot be read says nothing.
		if m, err := state.ModelIn(e); err == nil {
			n.model = m
		}
		return
	}
	if e.LSN < n.c.Flushed.LSN {
		n.older[e.Key] = found{e.LSN, e.Delete}
	}
	if e.LSN < n.c.Spilled.LSN {
		return
	}
	line, _, err := state.LineIn(e)
	if err != nil {
		return
	}
	if !e.Delete {
		if e.LSN >= n.c.Flushed.LSN {
			if _, _, err := state.DocumentIn(n.s.Source().Codec, e, n.v.Source.FileLimit); err != nil {
				return // no file can be made of it
			}
		}
		n.hashes[e.Key] = append(n.hashes[e.Key], line.ContentHash)
	}
	n.newest[e.Key] = found{e.LSN, e.Delete}
}

// files puts what is not in files yet there.
func (n *renewal) files() error {
	var due []string
	for key, f := range n.newest {
		if f.version >= n.c.Flushed.LSN && document.Of(key) != nil {
			due = append(due, key)
		}
	}
	slices.SortFunc(due, func(a, b string) int { return cmp.Compare(n.newest[a].version, n.newest[b].version) })
	if len(due) == 0 {
		return nil
	}
	fl, err := docfile.NewFlusher(docfile.Options{Layout: n.r.o.layout(n.r.Dir), Token: "repair-" + n.r.Manifest.ID, Clock: n.r.o.Clock, Workers: 1, Limit: int64(n.v.Source.FileLimit)})
	if err != nil {
		return err
	}
	for part := range slices.Chunk(due, 64) {
		var changes []docfile.Change
		for _, key := range part {
			c, err := n.change(key)
			if err != nil {
				return errors.Join(err, fl.Close())
			}
			changes = append(changes, c)
		}
		res, err := fl.Round(n.r.ctx, changes)
		if err == nil && len(res.Blocked) > 0 {
			err = res.Blocked[0].Err
		}
		if err != nil {
			return errors.Join(err, fl.Close())
		}
	}
	n.d.Result = fmt.Sprintf("%d documents that were only in the log were put into files", len(due))
	return fl.Close()
}

// damagedFiles puts back, from the log that is going to be set aside, what it
// still has of files below flushed that have lost it.
func (n *renewal) damagedFiles() error {
	for _, key := range slices.Sorted(maps.Keys(n.older)) {
		at := n.older[key]
		k := document.Of(key)
		if k == nil || at.deleted || n.newest[key].version > at.version {
			continue
		}
		j := n.v.Document(k, key[1:], nil, 0)
		if j.Err != nil {
			return j.Err
		}
		if f := j.Finding; f == nil || f.Heals != repair.ByLog || f.LSN != at.version {
			continue
		}
		if err := n.putBack(key, at.version, j.Finding); err != nil {
			return err
		}
	}
	return nil
}

func (n *renewal) putBack(key string, version wal.LSN, f *repair.Finding) error {
	d := repair.Done{Action: repair.Action{Do: repair.Restore, Path: f.Path, ID: f.ID, From: repair.ByLog, Findings: []repair.Finding{*f}}}
	e, err := n.log.ReadAt(n.r.ctx, version)
	if err != nil {
		return err
	}
	doc, _, err := state.DocumentIn(n.s.Source().Codec, &e, n.v.Source.FileLimit)
	if err != nil {
		return err
	}
	name := n.r.Path(filepath.FromSlash(f.Path))
	if info, err := n.r.o.FS.Stat(name); err == nil && !info.Mode.IsRegular() {
		if err := n.r.AsideSpecial(&d, f.Path, journal.Why(d.Findings)); err != nil {
			return err
		}
	}
	if err := n.r.WriteAt(&d, f.Path, doc, e.Time); err != nil {
		return err
	}
	d.Result = "put back, from the log"
	return n.r.done(d, nil)
}

func (n *renewal) change(key string) (docfile.Change, error) {
	id, at, k := key[1:], n.newest[key], document.Of(key)
	e, err := n.log.ReadAt(n.r.ctx, at.version)
	if err != nil {
		return docfile.Change{}, err
	}
	view, err := state.Read(&e)
	if err != nil {
		return docfile.Change{}, err
	}
	return docfile.Change{
		Folder: n.v.Folders[k.At], Name: docfile.FileName(id), Delete: e.Delete, Mtime: e.Time, ID: id, Version: e.LSN,
		Data: func() ([]byte, error) { return n.s.Source().Codec.Doc(&view, n.v.Source.FileLimit) },
		Ours: func(_ vfs.Info, data func() ([]byte, error)) bool {
			b, err := data()
			return err == nil && n.ours(key, hashOf(b))
		},
	}, nil
}

// ours says whether bytes are a version of a document that log or index know.
func (n *renewal) ours(key string, hash [32]byte) bool {
	if slices.Contains(n.hashes[key], hash) {
		return true
	}
	line, err := n.v.Line(document.Of(key), key[1:])
	return err == nil && line.ContentHash == hash
}

// begin makes the new segment, the index as of its start, and the checkpoint
// that names it; then the old segments go.
func (n *renewal) begin() error {
	r, src := n.r, n.s.Source()
	list, _, err := n.log.SegmentFiles()
	if err != nil {
		return err
	}
	highest, _ := n.log.Place(max(n.attested, n.c.Flushed.LSN, src.State.From()))
	if highest = max(highest, verify.NewestSegment(list)); highest >= segment.MaxNumber/2 {
		// A mark or a name may say anything. Behind this one no checkpoint would hold: the
		// log begins behind what there is of it, and the index, which knows positions that
		// are still to come, is made from the files.
		highest, n.low = 0, true
		for _, f := range list {
			if f.Number < segment.MaxNumber/2 {
				highest = max(highest, f.Number)
			}
		}
	}
	number := highest + 1
	var nonce [4]byte
	if err := r.o.Random(nonce[:]); err != nil {
		return err
	}
	if err := r.IntendAny(n.d, "wal/"+segment.Name(number)); err != nil {
		return err
	}
	geo := segment.Geometry{UUID: n.log.UUID(), Size: n.log.SegmentSize()}
	h := segment.Header{Nonce: binary.LittleEndian.Uint32(nonce[:]), Time: max(r.o.Clock().UnixMicro(), n.c.Time+1, n.lastTime+1)}
	mark, err := wal.NewSegment(r.o.FS, r.Dir, geo, number, h, r.o.fileMode())
	if err != nil {
		return err
	}
	if err := n.index(mark); err != nil {
		return err
	}
	c := n.c
	c.UUID, c.SegmentSize, c.Flushed, c.Spilled, c.Attested, c.Time, c.Mtimes = geo.UUID, geo.Size, mark, mark, mark, h.Time, [wal.Folders]int64{}
	if err := r.IntendAny(n.d, "checkpoint"); err != nil {
		return err
	}
	if err := wal.NewCheckpoint(r.o.FS, r.Dir, c, r.o.fileMode()); err != nil {
		return err
	}
	n.d.Result = strings.TrimPrefix(n.d.Result+"; the log goes on in "+segment.Name(number), "; ")
	return r.retireBelow(n.d, n.log, number)
}

// index writes the index as of the new log's start, or takes it away.
func (n *renewal) index(mark wal.Mark) error {
	r, src := n.r, n.s.Source()
	for _, name := range []string{index.BaseName, index.DeltaName} {
		if err := r.IntendAny(n.d, name); err != nil {
			return err
		}
	}
	fromFiles := n.low || slices.ContainsFunc(n.gaps, func(g wal.Gap) bool {
		return g.To > n.c.Spilled.LSN && g.At < n.c.Flushed.LSN // a file may hold what only the damage knew
	})
	set := src.State.Set()
	if set == nil {
		return errs.ErrClosed
	}
	defer func() { _ = set.Release() }()
	if !fromFiles {
		err := n.writeIndex(set, mark)
		if !errors.Is(err, errs.ErrCorrupt) {
			return err
		}
	}
	for _, name := range []string{index.DeltaName, index.BaseName} {
		if err := r.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

func (n *renewal) writeIndex(set *index.Set, mark wal.Mark) error {
	r := n.r
	ch := index.Changes{Line: func(dst []byte, c index.Change) ([]byte, error) {
		e, err := n.log.ReadAt(r.ctx, c.Version)
		if err != nil {
			return nil, err
		}
		view, err := state.Read(&e)
		if err != nil {
			return nil, err
		}
		return index.Finish(dst, view.Line, c.Version, e.Time.UnixMicro())
	}}
	for _, key := range slices.Sorted(maps.Keys(n.newest)) {
		k := document.Of(key)
		if k == nil {
			continue
		}
		c := index.Change{Section: k.Section, ID: key[1:], Version: n.newest[key].version, Deleted: n.newest[key].deleted}
		if k == document.Assemblies && !c.Deleted {
			var err error
			if c.Members, err = n.members(c.Version); err != nil {
				return err
			}
		}
		ch.List = append(ch.List, c)
	}
	model := index.ModelOf(set)
	if n.model.LSN > model.LSN {
		model = n.model
	}
	_, err := index.WriteBase(set, index.Target{
		FS: r.o.FS, Dir: r.Dir, Temp: r.Path("tmp", "index.repair"), Perm: r.o.fileMode(),
		Store: uuid.UUID(n.log.UUID()).String(), LSN: mark.LSN, Chain: mark.Sum, Now: r.o.Clock(), Model: model,
	}, ch)
	return err
}

// members are those of an assembly in one of its versions.
func (n *renewal) members(version wal.LSN) ([]string, error) {
	e, err := n.log.ReadAt(n.r.ctx, version)
	if err != nil {
		return nil, err
	}
	view, err := state.Read(&e)
	if err != nil {
		return nil, err
	}
	return assembly.MembersOf(view.Line)
}
