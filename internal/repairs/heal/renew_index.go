package heal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/writerfile"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
	"github.com/varve-db/varve/writer"
)

// begin creates the first segment of the new log, the index as of that segment's start, and the checkpoint
// that refers to it; then it removes the old segments.
func (n *renewal) begin() error {
	r, src := n.r, n.s.Source()
	list, _, err := n.log.Past().SegmentFiles()
	if err != nil {
		return err
	}
	highest, _ := n.log.Past().Place(max(n.attested, n.c.Flushed.LSN, src.State.From()))
	if highest = max(highest, past.NewestSegment(list)); highest >= segment.MaxNumber/2 {
		// A damaged mark or file name may be any number. After this one no checkpoint would be
		// valid: the log restarts after its highest plausible segment, and the index, whose lines
		// would have positions beyond that, is rebuilt from the files.
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
	if err := r.keepFor(n.d, "wal/"+segment.Name(number)); err != nil {
		return err
	}
	geo := segment.Geometry{UUID: n.log.UUID(), Size: n.log.SegmentSize()}
	h := segment.Header{Nonce: binary.LittleEndian.Uint32(nonce[:]),
		Time: max(r.o.Clock().UnixMicro(), n.c.Time+1, n.lastTime+1)}
	// A copy elsewhere cannot continue. The log records that: from this position on only the new segment
	// is missing.
	if err := n.log.Past().Broken(past.Repaired, geo.Start(number), r.o.Clock(), r.o.fileMode()); err != nil {
		return err
	}
	mark, err := wal.NewSegment(r.o.FS, r.dir, geo, number, h, r.o.fileMode())
	if err != nil {
		return err
	}
	if err := n.writers(mark.LSN); err != nil {
		return err
	}
	if err := n.purges(mark.LSN); err != nil {
		return err
	}
	if err := n.index(mark); err != nil {
		return err
	}
	c := n.c
	c.UUID, c.SegmentSize, c.Flushed, c.Spilled, c.Attested, c.Time, c.Mtimes = geo.UUID, geo.Size, mark, mark, mark,
		h.Time, [wal.Folders]int64{}
	if err := r.keepFor(n.d, "checkpoint"); err != nil {
		return err
	}
	if err := wal.NewCheckpoint(r.o.FS, r.dir, c, r.o.fileMode()); err != nil {
		return err
	}
	n.d.Result = strings.TrimPrefix(n.d.Result+"; the log continues in "+segment.Name(number), "; ")
	return r.retireBelow(n.d, n.log, number, n.attested)
}

// writers writes to wal/writers the descriptions of all writers before the position start, at which the new log
// begins, because the new log does not contain them.
func (n *renewal) writers(start wal.LSN) error {
	if n.log.Features()&wal.FeatureWriters == 0 {
		return nil
	}
	r := n.r
	f := writerfile.New(r.o.FS, r.dir, n.log.UUID())
	t, _, whole, err := f.Read()
	if err != nil {
		return fmt.Errorf("reading %s: %w", f.Path(), err)
	}
	known := len(t.All())
	if !whole {
		if err := state.PastWriters(r.ctx, n.log.Past(), start, t.Add); err != nil {
			return err
		}
	}
	for _, w := range n.explained {
		t.Add(w)
	}
	if whole && len(t.All()) == known && !n.low {
		return nil
	}
	if err := r.keepFor(n.d, "wal/"+writerfile.Name); err != nil {
		return err
	}
	list := slices.DeleteFunc(t.All(), func(w writer.Writer) bool { return w.Since >= start })
	if err := f.Write(list, r.path("tmp", writerfile.Name+".repair"), r.o.fileMode()); err != nil {
		return fmt.Errorf("writing %s: %w", f.Path(), err)
	}
	return nil
}

// purges writes to wal/purges, durably, all purges before the position start, at which the new log begins, because
// the new log does not contain them.
func (n *renewal) purges(start wal.LSN) error {
	if n.log.Features()&wal.FeaturePurges == 0 {
		return nil
	}
	r := n.r
	f := purgefile.New(r.o.FS, r.dir)
	c, err := f.Read()
	if err != nil {
		return fmt.Errorf("reading %s: %w", f.Path(), err)
	}
	known := len(c.Rows.All())
	if !c.Whole() {
		// What is damaged there as well is lost, and was reported.
		_ = state.PastPurges(r.ctx, n.log.Past(), 0, start, c.Rows.Add)
		if err := r.ctx.Err(); err != nil {
			return err
		}
	}
	for _, row := range n.purged {
		c.Rows.Add(row)
	}
	if len(c.Rows.All()) == known {
		return nil
	}
	if err := r.keepFor(n.d, "wal/"+purgefile.Name); err != nil {
		return err
	}
	if err := f.Write(c.Rows.Sorted(), c.Damaged, r.path("tmp", purgefile.Name+".repair"), r.o.fileMode()); err != nil {
		return fmt.Errorf("writing %s: %w", f.Path(), err)
	}
	return nil
}

// index writes an index for the start of the new log. If that is not possible, it removes the index files, so that the
// next open rebuilds the index from the document files.
func (n *renewal) index(mark wal.Mark) error {
	r, src := n.r, n.s.Source()
	for _, name := range []string{index.BaseName, index.DeltaName} {
		if err := r.keepFor(n.d, name); err != nil {
			return err
		}
	}
	fromFiles := n.low || slices.ContainsFunc(n.gaps, func(g wal.Gap) bool {
		return g.To > n.c.Spilled.LSN && g.At < n.c.Flushed.LSN // a file may have a version recorded only there
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
		if err := r.remove(name); err != nil {
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
		return index.Finish(dst, view.Line, c.Version, e.Time.UnixMicro(), e.Writer)
	}}
	for _, key := range slices.Sorted(maps.Keys(n.newest)) {
		k := kind.Of(key)
		if k == nil {
			continue
		}
		c := index.Change{Section: k.Section, ID: key[1:], Version: n.newest[key].version, Deleted: n.newest[key].deleted}
		if k == kind.Assemblies && !c.Deleted {
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
		FS: r.o.FS, Dir: r.dir, Temp: r.path("tmp", "index.repair"), Perm: r.o.fileMode(),
		Store: uuid.UUID(n.log.UUID()).String(), LSN: mark.LSN, Chain: mark.Sum, Now: r.o.Clock(), Model: model,
	}, ch)
	return err
}

// members returns the ids of the members of an assembly. version is the log position of the version of the assembly,
// in the damaged log.
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
