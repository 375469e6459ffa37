package heal

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/repairs/past"
	"github.com/varve-db/varve/internal/repairs/verify"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
	walpast "github.com/varve-db/varve/wal/past"
	"github.com/varve-db/varve/writer"
)

// A damaged log cannot be repaired in place: each frame has the checksum of the one before it. So
// everything readable in it, also after the damage, is written to files and index, and the log is
// restarted: under its UUID, so that the archive stays its history and versions keep their meaning,
// and in a segment above every position that was ever assigned, so that no position has two
// meanings. The steps are in this order, so that the repair may be interrupted anywhere and run
// again:
//
// 1. folders of documents that are missing are made again, and it is recorded that their files are
//    to be restored; the newest versions above flushed are written to files and synced; of working
//    memory everything above spilled
// 2. a new segment is created, to which nothing refers yet
// 3. the descriptions of the writers of everything below that segment are written to wal/writers
// 4. the index is written, as of that segment's start; or it is removed, and opening rebuilds it
//    from the files, if the damage hides entries that the index needs
// 5. the checkpoint is written and refers to the new segment: from here on it is the log
// 6. the old segments are removed: sound ones are copied to the archive, all are kept in quarantine

// renewal replaces a damaged log by a new one.
type renewal struct {
	r   *repairer
	d   *repair.Done
	s   Store
	v   *verify.Run
	log *wal.FileLog
	c   wal.Checkpoint

	attested wal.LSN
	lastTime int64
	newest   map[string]found // readable entries above spilled, by key
	older    map[string]found // entries below flushed: the old log may have the only copy of them
	hashes   map[string][][32]byte
	worked   map[string][]wal.LSN // entries of working memory above spilled, by scope
	gaps     []wal.Gap
	model    index.Model // the newest embedding model that a readable entry names
	low      bool        // the new log begins below positions that the checkpoint or the index contains

	explained []writer.Writer // descriptions of writers, found in readable entries
	purged    []purgefile.Row // purges, found in readable entries
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
		newest: map[string]found{}, older: map[string]found{}, hashes: map[string][][32]byte{},
		worked: map[string][]wal.LSN{}}
	if n.c, err = wal.ReadCheckpoint(r.o.FS, r.dir); places.Gone(err) || errors.Is(err, errs.ErrCorrupt) {
		n.c, err = n.log.Marks(), nil
	}
	if err != nil {
		return fmt.Errorf("reading the checkpoint: %w", err)
	}
	for _, step := range []func() error{n.read, n.folders, n.damagedFiles, n.files, n.scopes, n.begin} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// read reads all frames of the damaged log from the position spilled on. Up to the position that is known to have been
// durable, read skips damaged parts and continues after them. After that position, only frames that continue the hash
// chain belong to the log.
func (n *renewal) read() error {
	known, err := n.log.Known()
	if err != nil {
		return err
	}
	n.attested = max(n.c.Attested.LSN, known)
	list, _, err := n.log.Past().SegmentFiles()
	if err != nil {
		return err
	}
	var prev wal.Mark
	var batch []wal.Entry
	ended, begun := false, map[uint64]bool{}
	for i, f := range list {
		unbegun, err := n.log.Past().Unbegun(f)
		if err != nil && !places.Gone(err) {
			return err
		}
		if unbegun || ended {
			continue
		}
		begun[f.Number] = true
		end, _ := past.FramesEnd(n.log, list[i:])
		_, err = n.log.Past().WalkSegment(n.r.ctx, f.Number, prev, end, func(end wal.Mark, e *wal.Entry) error {
			if ended {
				return nil
			}
			prev = end
			if e == nil {
				return nil
			}
			n.lastTime = max(n.lastTime, e.Time.UnixMicro())
			batch = append(batch, wal.Entry{LSN: e.LSN, Time: e.Time, Key: strings.Clone(e.Key), Kind: e.Kind, Delete: e.Delete,
				Value: slices.Clone(e.Value), Writer: e.Writer, Cause: e.Cause})
			if !e.More || e.LSN < n.attested {
				for _, e := range batch {
					n.saw(&e)
				}
				batch = batch[:0]
			}
			return nil
		}, func(g wal.Gap) {
			if errors.Is(g.Err, segment.ErrEnd) && g.To == end {
				return // the end of the segment's frames
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
	n.holes(list, begun)
	return nil
}

// holes records a gap for each segment that is missing between the position spilled and the durable end of the log. The
// keys of begun are the numbers of the existing segments.
func (n *renewal) holes(list []wal.SegmentFile, begun map[uint64]bool) {
	first, _ := n.log.Past().Place(n.c.Spilled.LSN - 1)
	last, _ := n.log.Past().Place(n.attested - 1)
	if newest := walpast.NewestSegment(list); last > newest+1 { // a damaged mark may be any number
		n.gaps = append(n.gaps, wal.Gap{At: max(n.c.Spilled.LSN, n.log.Past().SegmentEnd(newest)), To: n.attested,
			Err: segment.ErrEnd})
		last = newest
	}
	for number := first; number <= last; number++ {
		if !begun[number] {
			end := n.log.Past().SegmentEnd(number)
			n.gaps = append(n.gaps, wal.Gap{At: end - n.log.SegmentSize(), To: min(end, n.attested), Err: segment.ErrEnd})
		}
	}
}

func (n *renewal) saw(e *wal.Entry) {
	if _, err := state.Check(e); err != nil {
		return // the entry is kept only in the segment in quarantine
	}
	if len(e.Key) > 0 && e.Key[0] == record.Working {
		if e.LSN >= n.c.Spilled.LSN {
			n.worked[e.Key[1:]] = append(n.worked[e.Key[1:]], e.LSN)
		}
		return
	}
	if len(e.Key) > 0 && e.Key[0] == record.Writer {
		if w, err := state.WriterIn(e); err == nil {
			n.explained = append(n.explained, w)
		}
		return
	}
	if len(e.Key) > 0 && e.Key[0] == record.Purge {
		if rows, err := state.PurgesIn(e, n.log.UUID()); err == nil {
			n.purged = append(n.purged, rows...)
		}
		return
	}
	if len(e.Key) > 0 && e.Key[0] == record.Kept {
		return // not a change of a document
	}
	if len(e.Key) > 0 && e.Key[0] == record.Model {
		// Each model entry replaces those before it; an entry that cannot be read is skipped.
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
				return // the entry cannot become a file
			}
		}
		n.hashes[e.Key] = append(n.hashes[e.Key], line.ContentHash)
	}
	n.newest[e.Key] = found{e.LSN, e.Delete}
}

// folders creates the missing folders of documents. The new log has only some of the documents. folders records that
// the files of the other documents must be restored, so that these documents are not treated as deleted.
func (n *renewal) folders() error {
	for _, k := range kind.Kinds {
		if k.Feature&^(n.c.Features|n.log.Features()) != 0 {
			continue
		}
		if err := k.In(n.r.o.layout(n.r.dir)).MakeAgain(true); err != nil {
			return err
		}
	}
	return nil
}

// files flushes the documents that are only in the damaged log: it writes them to their document files.
func (n *renewal) files() error {
	var due []string
	for key, f := range n.newest {
		if f.version >= n.c.Flushed.LSN && kind.Of(key) != nil {
			due = append(due, key)
		}
	}
	slices.SortFunc(due, func(a, b string) int { return cmp.Compare(n.newest[a].version, n.newest[b].version) })
	if len(due) == 0 {
		return nil
	}
	fl, err := docfile.NewFlusher(docfile.Options{Layout: n.r.o.layout(n.r.dir), Token: n.r.token(), Clock: n.r.o.Clock,
		Workers: 1, Limit: int64(n.v.Source.FileLimit)})
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
	n.d.Result = human.Count(len(due), "document of the log was written to its file",
		"documents of the log were written to their files")
	return fl.Close()
}

// damagedFiles restores document files that are damaged and whose version was already flushed, if the damaged log still
// has the content of that version. It must run before the damaged log is moved to quarantine.
func (n *renewal) damagedFiles() error {
	for _, key := range slices.Sorted(maps.Keys(n.older)) {
		at := n.older[key]
		k := kind.Of(key)
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
	d := repair.Done{Action: repair.Action{Do: repair.Restore, Path: f.Path, ID: f.ID, From: repair.ByLog,
		Findings: []repair.Finding{*f}}}
	e, err := n.log.ReadAt(n.r.ctx, version)
	if err != nil {
		return err
	}
	doc, _, err := state.DocumentIn(n.s.Source().Codec, &e, n.v.Source.FileLimit)
	if err != nil {
		return err
	}
	k := kind.Of(key)
	if err := k.In(n.r.o.layout(n.r.dir)).MakeFor(k.FileName(key[1:])); err != nil {
		return err
	}
	if err := n.r.writeAt(&d, f.Path, doc, e.Time); err != nil {
		return err
	}
	d.Result = "restored, from the log"
	return n.r.done(d, nil)
}

func (n *renewal) change(key string) (docfile.Change, error) {
	id, at, k := key[1:], n.newest[key], kind.Of(key)
	e, err := n.log.ReadAt(n.r.ctx, at.version)
	if err != nil {
		return docfile.Change{}, err
	}
	view, err := state.Read(&e)
	if err != nil {
		return docfile.Change{}, err
	}
	return docfile.Change{
		Folder: n.v.Folders[k.At], Name: k.FileName(id), Delete: e.Delete, Mtime: e.Time, ID: id, Version: e.LSN,
		Data: func() ([]byte, error) { return n.s.Source().Codec.Doc(&view, n.v.Source.FileLimit) },
		Ours: func(_ vfs.Info, data func() ([]byte, error)) bool {
			b, err := data()
			return err == nil && n.isKnownVersion(key, hashOf(b))
		},
	}, nil
}

// isKnownVersion reports whether the bytes with the given hash are a version of the document with this key,
// according to the log or the index.
func (n *renewal) isKnownVersion(key string, hash [32]byte) bool {
	if slices.Contains(n.hashes[key], hash) {
		return true
	}
	line, err := n.v.Line(kind.Of(key), key[1:])
	return err == nil && line.ContentHash == hash
}
