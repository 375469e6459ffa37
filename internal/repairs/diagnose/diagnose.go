package diagnose

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"syscall"

	"github.com/google/uuid"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/copy/migrate"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/repairs/verify"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// Options are the parameters of Look besides the store's folder.
type Options struct {
	Open func(ctx context.Context) (Store, error) // opens the store read-only: nothing on disk changes
	// returns an error that describes what is wrong in the text of a config.json, or nil if it is valid
	Config func(text []byte) error
	FS     vfs.FS
	Verify repair.VerifyOptions
}

// Store is a store that was opened for verification.
type Store interface {
	Source() view.Source
	Close() error
}

// toldEvery is the number of files that are read between two progress reports (calls of Options.Progress).
const toldEvery = 512

// Closed examines a store that cannot be opened read-only; opening is the error of the failed attempt. Closed reports
// missing or damaged parts of the configuration, the checkpoint, the log and the index, and files that cannot be read.
// Closed changes nothing, and works without a usable log or index. If opening does not mean damage, Closed yields this
// error, and the sequence ends.
func Closed(ctx context.Context, dir string, opening error, o Options) iter.Seq2[repair.Finding, error] {
	return func(yield func(repair.Finding, error) bool) {
		g := &ground{ctx: ctx, dir: dir, o: o, sum: o.Verify.Summary}
		if g.sum == nil {
			g.sum = new(repair.Summary)
		}
		*g.sum = repair.Summary{Findings: map[repair.Kind]int64{}}
		tell := yield
		yield = func(f repair.Finding, err error) bool {
			if uerr := f.Unread(); uerr != nil {
				_ = tell(repair.Finding{}, uerr)
				return false
			}
			if err == nil {
				g.sum.Findings[f.Kind]++
				g.sum.Worst = max(g.sum.Worst, f.Severity)
			}
			return tell(f, err)
		}
		err := g.damage(opening)
		for _, step := range []func() error{g.config, g.log, g.index} {
			if err == nil {
				err = step()
			}
		}
		if err == nil && len(g.list) == 0 {
			g.add(repair.Finding{Kind: repair.StoreUnreadable, Severity: repair.Lost, Path: ".", Stake: "the whole store",
				Err: opening})
		}
		for _, f := range g.list {
			if err == nil && !yield(f, nil) {
				return
			}
		}
		if err == nil {
			var more bool
			if more, err = g.files(yield); !more {
				return
			}
		}
		if err != nil {
			yield(repair.Finding{}, err)
		}
	}
}

// openTries is the maximum number of times that Look tries to open a store. A failed attempt may be due to a writer
// that is replacing the index at that moment.
const openTries = 5

// Look opens a store read-only and verifies it. While the store is open, Look passes it to opened. If the store cannot
// be opened, Look examines it with Closed. If a path of the store's files or folders leads to a link or to another
// kind of file, Look reports only that.
func Look(ctx context.Context, dir string, o Options, opened func(view.Source)) iter.Seq2[repair.Finding, error] {
	return func(yield func(repair.Finding, error) bool) {
		var s Store
		err := o.Verify.Validate()
		if err != nil {
			yield(repair.Finding{}, err)
			return
		}
		// If a link is in the place of a folder, nothing else can be examined.
		if list, blocked := verify.NotFolders(o.FS, dir); blocked && isStore(dir, o) {
			yieldAll(list, o.Verify.Summary, yield)
			return
		}
		if list, err := o.misshapen(dir); err != nil || len(list) > 0 {
			if err != nil {
				yield(repair.Finding{}, err)
				return
			}
			yieldAll(list, o.Verify.Summary, yield)
			return
		}
		for range openTries {
			if s, err = o.Open(ctx); err == nil || ctx.Err() != nil || errors.Is(err, errs.ErrLocked) {
				break
			}
		}
		if err != nil {
			Closed(ctx, dir, err, o)(yield)
			return
		}
		defer func() { _ = s.Close() }()
		if opened != nil {
			opened(s.Source())
		}
		verify.Findings(ctx, s.Source(), o.Verify)(yield)
	}
}

// yieldAll yields the findings in list, and counts them in the summary. list must have all findings of a verification.
func yieldAll(list []repair.Finding, sum *repair.Summary, yield func(repair.Finding, error) bool) {
	if sum == nil {
		sum = new(repair.Summary)
	}
	*sum = repair.Summary{Findings: map[repair.Kind]int64{}}
	for _, f := range list {
		sum.Findings[f.Kind]++
		sum.Worst = max(sum.Worst, f.Severity)
		if !yield(f, nil) {
			return
		}
	}
}

type ground struct {
	ctx     context.Context
	dir     string
	o       Options
	sum     *repair.Summary
	list    []repair.Finding
	noLog   bool
	mark    wal.Checkpoint
	hasMark bool
}

func (g *ground) add(f repair.Finding) {
	if f.Next == "" {
		f.Next = repair.NextRepair
	}
	f.Remarks |= repair.Unopened
	if f.Offset == 0 {
		_, f.Offset = view.Place(f.Err, f.Path)
	}
	g.list = append(g.list, f)
}

func (g *ground) path(elem ...string) string {
	return filepath.Join(append([]string{g.dir}, elem...)...)
}

// damage returns nil if opening, the error of the failed attempt to open the store, means damage. Otherwise it returns
// that error: for example if there is no store, if the store was moved elsewhere, if a permission is missing, or if
// the store has a newer format.
func (g *ground) damage(opening error) error {
	var unfinished *repair.UnfinishedError
	switch {
	case errors.Is(opening, errs.ErrMoved), errors.As(opening, &unfinished), errors.Is(opening, errs.ErrNewerFormat),
		errors.Is(opening, errs.ErrLocked), errors.Is(opening, errs.ErrPermission),
		vfs.IsPermission(opening), vfs.IsStarved(opening), errors.Is(opening, context.Canceled),
		errors.Is(opening, context.DeadlineExceeded):
		return opening
	}
	if _, err := g.o.FS.Stat(g.path("wal", "open.lock")); err == nil {
		return nil
	}
	if b, err := vfs.ReadFile(g.o.FS, g.path("config.json"), places.ConfigMost); err == nil && g.o.Config(b) == nil {
		return nil
	}
	names, err := g.o.FS.ReadDir(g.path(kind.Memories.Folder))
	if err == nil && kind.Memories.HasDocuments(names) {
		return nil
	}
	return opening
}

func (g *ground) config() error {
	b, err := vfs.ReadFile(g.o.FS, g.path("config.json"), places.ConfigMost)
	if places.Gone(err) {
		return nil // the next open creates it
	}
	if err == nil {
		err = g.o.Config(b)
	}
	if errors.Is(err, errs.ErrNewerFormat) || vfs.IsPermission(err) {
		return err
	}
	if err != nil {
		g.add(repair.Finding{Kind: repair.ConfigInvalid, Severity: repair.Healable, Path: "config.json", Offset: -1, Err: err,
			Stake: "limits and intervals: the defaults apply", Heals: repair.ByDefaults})
	}
	return nil
}

// log looks for a segment with a valid start, and reports it if the log has none.
func (g *ground) log() error {
	var err error
	if g.mark, err = wal.ReadCheckpoint(g.o.FS, g.dir); err == nil {
		g.hasMark = true
	} else if info, serr := g.o.FS.Stat(g.path("checkpoint")); serr == nil && info.Mode.IsRegular() {
		if errors.Is(err, errs.ErrNewerFormat) || vfs.IsPermission(err) {
			return err
		}
		g.add(repair.Finding{Kind: repair.CheckpointSlot, Severity: repair.Healable, Path: "checkpoint", Offset: -1, Err: err,
			Stake: "the position at which recovery begins", Heals: repair.ByLog})
	}
	names, err := g.o.FS.ReadDir(g.path("wal"))
	if err != nil && !places.Gone(err) {
		return fmt.Errorf("reading %s: %w", g.path("wal"), err)
	}
	var unreadable []repair.Finding
	for _, name := range names {
		number, ok := segment.ParseName(name)
		if !ok {
			continue
		}
		b, err := vfs.ReadFile(g.o.FS, g.path("wal", name), segment.MaxSize)
		if err != nil {
			return fmt.Errorf("reading %s: %w", g.path("wal", name), err)
		}
		start, _, err := segment.ParseStart(b)
		if err == nil && start.Number != number {
			err = fmt.Errorf("%w: the header has segment number %d, but the name of the file has %d", segment.ErrHeader,
				start.Number, number)
		}
		switch {
		case errors.Is(err, segment.ErrEnd):
		case err == nil || g.hasMark:
			g.noCheckpoint()
			return nil
		default: // neither this file nor a checkpoint has the parameters to read it
			unreadable = append(unreadable, repair.Finding{Kind: repair.SegmentDamaged, Severity: repair.Lost,
				Path:  "wal/" + name,
				Stake: "acknowledged writes that were not in files yet, if there were any, and the history",
				Err: &errs.CorruptionError{Path: "wal/" + name, Segment: number,
					Err: fmt.Errorf("the file does not begin with a segment header, and there is no checkpoint: %w", err)}})
		}
	}
	g.noLog = true
	if len(unreadable) > 0 {
		for _, f := range unreadable {
			g.add(f)
		}
		return nil
	}
	f := repair.Finding{Kind: repair.LogMissing, Severity: repair.Healable, Path: "wal", Offset: -1, Heals: repair.ByFiles,
		Stake: "the history of the memories; their newest versions are in files", Err: errors.New("wal/ has no segment")}
	if g.hasMark && g.mark.Attested.LSN > g.mark.Flushed.LSN {
		f.Severity, f.Heals = repair.Lost, ""
		f.Stake = fmt.Sprintf("acknowledged writes that were not in files yet: %d bytes of log",
			g.mark.Attested.LSN-g.mark.Flushed.LSN)
	}
	g.add(f)
	return nil
}

// noCheckpoint reports that the checkpoint is missing although the store has a log.
func (g *ground) noCheckpoint() {
	if _, err := g.o.FS.Stat(g.path("checkpoint")); places.Gone(err) {
		g.add(repair.Finding{Kind: repair.CheckpointSlot, Severity: repair.Healable, Path: "checkpoint", Offset: -1,
			Err: errAbsent, Stake: "the position at which recovery begins", Heals: repair.ByLog})
	}
}

var errAbsent = errors.New("the file is missing")

// index loads the base file and the delta file of the index in the same way as opening the store does, and reports
// damage in them.
func (g *ground) index() error {
	if g.noLog {
		return nil // rebuilt from the files, with the log
	}
	var err error
	if _, err = g.o.FS.Stat(g.path(index.BaseName)); err == nil && g.hasMark {
		want := index.Want{Store: uuid.UUID(g.mark.UUID).String(), Spilled: g.mark.Spilled.LSN}
		var set *index.Set
		if set, err = index.Load(g.o.FS, g.dir, want, nil); err == nil {
			return set.Release()
		}
	}
	if errors.Is(err, errs.ErrNewerFormat) || vfs.IsPermission(err) {
		return err
	}
	if err != nil {
		path, offset := view.Place(err, index.BaseName)
		_, noBase := g.o.FS.Stat(g.path(index.BaseName))
		_, noDelta := g.o.FS.Stat(g.path(index.DeltaName))
		if places.Gone(noBase) {
			err = errAbsent
		}
		f := repair.Finding{Kind: repair.IndexDamaged, Severity: repair.Healable, Path: path, Offset: offset, Err: err,
			Stake: "finding and listing memories; the memories themselves are in their files", Heals: repair.ByIndex}
		if places.Gone(noBase) && places.Gone(noDelta) {
			f.Remarks = repair.Absent
		}
		g.add(f)
	}
	return nil
}

// files reads the files of every kind of document. It reports each file that is not a document, and each document
// that is in a file with the wrong name. more is false if yield has ended the iteration.
func (g *ground) files(yield func(repair.Finding, error) bool) (more bool, err error) {
	for _, k := range kind.Kinds {
		if more, err = g.folder(k, yield); !more || err != nil {
			break
		}
	}
	return more, err
}

func (g *ground) folder(k *kind.Kind, yield func(repair.Finding, error) bool) (more bool, err error) {
	folder := k.In(docfile.Layout{FS: g.o.FS, Root: g.dir})
	names, err := folder.Names()
	if places.Gone(err) {
		return true, nil
	}
	if err != nil {
		return yield(repair.Finding{Kind: verify.KindOf(k, repair.MemoryUnreadable), Severity: repair.Lost, Path: k.Folder,
			Offset: -1, Err: err, Stake: "all files in the folder", Next: repair.NextRepair}, nil), nil
	}
	for i, name := range names {
		if err := g.ctx.Err(); err != nil {
			return true, err
		}
		if p := g.o.Verify.Progress; p != nil && i%toldEvery == 0 {
			p(int64(i), int64(len(names)))
		}
		if !k.IsDocument(name) {
			continue
		}
		f := repair.Finding{Path: k.Folder + "/" + name, Offset: -1, Next: repair.NextRepair, Remarks: repair.Unopened}
		if !g.o.Verify.Chosen(name) {
			continue
		}
		data, _, err := folder.Read(name, places.StoredMost)
		g.sum.Files, g.sum.Bytes = g.sum.Files+1, g.sum.Bytes+int64(len(data))
		var c kind.Content
		if err == nil {
			c, err = k.Decode(data, kind.DecodeOptions{Limits: kind.StoredLimits, ID: k.IDAt(name), Owned: true})
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			f.Kind, f.Severity, f.Offset, f.Err = repair.Unparsable, repair.Lost, kind.OffsetOf(err), err
			f.Stake, f.Heals = "this "+k.Noun+"; once the store is open, log and archive are searched for it", repair.BySalvage
			if errors.Is(err, jsondoc.ErrMergeConflict) {
				f.Heals = repair.ByMoving // one side of a conflict is not the document
			}
		case k.FileName(c.ID) != name:
			f.Kind, f.Severity, f.ID, f.Heals = repair.Misplaced, repair.Healable, c.ID, repair.ByMoving
			f.Stake, f.Err = "nothing, if the "+k.Noun+" is in its own file", k.Elsewhere(c.ID)
		default:
			continue
		}
		if !yield(f, nil) {
			return false, nil
		}
	}
	return true, nil
}

// misshapen returns the findings of verify.Misshapen if the folder is a store.
func (o *Options) misshapen(dir string) ([]repair.Finding, error) {
	g := &ground{dir: dir, o: *o}
	if g.damage(errs.ErrNoStore) != nil {
		return nil, nil // opening the folder reports why it is not a store
	}
	return verify.Misshapen(o.FS, dir)
}

// isStore reports whether the folder dir contains a store that is in use there and was not moved elsewhere. One of the
// store's folders may have been replaced by a link.
func isStore(dir string, o Options) bool {
	// ENOTDIR: something else, such as a FIFO, is in the place of wal/.
	if _, err := migrate.Residence(o.FS, dir); err != nil && vfs.EnterError(err) == nil && !errors.Is(err,
		syscall.ENOTDIR) {
		return false
	}
	if b, err := vfs.ReadFile(o.FS, filepath.Join(dir, "config.json"),
		places.ConfigMost); err == nil && o.Config(b) == nil {
		return true
	}
	info, err := o.FS.Stat(filepath.Join(dir, "wal"))
	if err != nil || !info.Mode.IsDir() {
		return false
	}
	_, err = o.FS.Stat(filepath.Join(dir, "wal", "open.lock"))
	return err == nil
}
