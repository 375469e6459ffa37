package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
	"github.com/varve-db/varve/writer"
)

// Source is the open store that is backed up. Its files must have been flushed just before.
type Source struct {
	FS         vfs.FS
	Dir        string
	Log        *wal.FileLog
	FileMode   fs.FileMode
	FolderMode fs.FileMode
	Clock      func() time.Time
	Self       vfs.Users
	Random     func([]byte) error
	Config     func() []byte // content of config.json, nil if it cannot be read
	Count      int64         // approximate number of memories

	// CatchUp applies the entries that other processes have committed.
	CatchUp func(context.Context) error
	// Flush flushes everything to files once more; nil if the backup must not write to the store.
	Flush func(context.Context) error
	// ModelAsOf returns the model of the vectors as of a log position; false if the index already includes later
	// changes.
	ModelAsOf func(wal.LSN) (index.Model, bool)
	Model     func() index.Model // the current embedding model
	// Documents has one element for each kind, in the order of kind.Kinds.
	Documents []Documents
	// Writer returns the writer that had this number when the version was committed.
	Writer func(number uint32, version uint64) writer.Writer
	// Writers returns all writers that the store can name, in the order of the log.
	Writers func() ([]writer.Writer, error)
	// Purges returns the purges that the store has recorded.
	Purges func() ([]purgefile.Row, error)
	// ScopeKeys lists the scopes of working memory; ReadScope returns the document of one scope.
	ScopeKeys func(context.Context) iter.Seq2[string, error]
	ReadScope func(context.Context, string) (Document, error)
}

// Documents are the documents of a kind.
type Documents struct {
	Kind *kind.Kind
	// IDs lists all ids, including those of expired documents.
	IDs func(context.Context) iter.Seq2[string, error]
	// Read returns the newest version of a document, or errs.ErrNotFound if the document was deleted meanwhile.
	Read func(context.Context, string) (Document, error)
}

// Document is a version of a document, byte for byte as in its file.
type Document struct {
	Bytes   []byte
	Version uint64
	Vector  int64  // number of the document's vector, 0 if it has none
	By      uint32 // the number of the version's writer, 0 if unknown
	Time    time.Time
}

// HeldEvery is the number of files that are copied between two checks of whether the held log exceeds its budget.
const HeldEvery = 16

// Backup copies a store into a new folder while other processes continue to write to the store. It holds the log so
// that no process recycles its segments, copies every document and then the log from the position of the files to its
// end, reads everything again, and finally renames the folder to dir. If the log grows beyond its budget meanwhile, the
// backup fails with errs.ErrLimit; the backup never makes a writer fail.
//
// Documents that are damaged and have no other copy do not prevent the backup of the rest: info.Damaged names them.
func Backup(ctx context.Context, s Source, dir string, o repair.BackupOptions) (info repair.BackupInfo, err error) {
	if dir != "" && places.Within(dir, s.Dir) && !places.Within(dir, filepath.Join(s.Dir, "backups")) {
		return info, fmt.Errorf("%s is inside the store: %w → give the path of a folder outside the store, or in %s",
			dir, errs.ErrInvalid,
			filepath.Join(s.Dir, "backups"))
	}
	hold, err := s.Log.Archive().Hold(ctx)
	if err != nil {
		return info, fmt.Errorf("keeping the log's segments from being removed: %w", err)
	}
	defer func() { err = errors.Join(err, hold.Release()) }()
	f, err := newForm(&s, dir, o)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	b := &backup{s: s, o: o, f: f, hold: hold}
	if err = b.run(ctx); err != nil {
		if err = errors.Join(err, f.discard()); dir != "" {
			err = fmt.Errorf("backing up to %s: %w", dir, err)
		}
	} else {
		info = b.info
		info.Left = f.leftovers()
	}
	return info, err
}

type backup struct {
	s     Source
	o     repair.BackupOptions
	f     form
	hold  *wal.Hold
	info  repair.BackupInfo
	from  wal.Mark
	whole wal.LSN
	model index.Model // embedding model at the log position from
	done  int64       // number of documents copied so far
	by    *writersList
}

func (b *backup) run(ctx context.Context) error {
	c, err := b.standing(ctx)
	if err != nil {
		return err
	}
	b.from, b.whole = c.Flushed, c.Flushed.LSN
	b.info = repair.BackupInfo{
		Format: modelless, Store: b.s.Log.UUID(), SegmentSize: b.s.Log.SegmentSize(), Made: b.s.Clock().UTC(),
		From: position(b.from),
	}
	if err := b.f.begin(&b.info, append(kind.FoldersOf(b.s.Log.Features()), backupWAL)); err != nil {
		return err
	}
	// A re-embedding may end or begin during the backup: its results are copied first and last, so
	// that the moments before its end and after its beginning have them.
	if err := b.computed(ctx); err != nil {
		return err
	}
	b.by = newWritersList(b.f)
	defer b.by.close()
	if err := b.documents(ctx); err != nil {
		return err
	}
	if err := b.s.CatchUp(ctx); err != nil {
		return err
	}
	b.info.Until = b.s.Clock().UTC()
	end := b.s.Log.AppliedMark()
	b.info.End, b.info.Whole = position(end), b.whole
	if err := b.log(ctx, end); err != nil {
		return err
	}
	if err := b.computed(ctx); err != nil {
		return err
	}
	if c := b.s.Config(); json.Valid(c) { // a change of the model is written to config.json before it takes effect
		b.info.Config = c
	}
	if err := b.models(ctx); err != nil {
		return err
	}
	if err := b.writers(end.LSN); err != nil {
		return err
	}
	if err := b.purges(end.LSN); err != nil {
		return err
	}
	if err := b.f.check(ctx, &b.info); err != nil {
		return fmt.Errorf("verifying the copy: %w", err)
	}
	if err := b.moments(ctx, end, c.Time); err != nil {
		return err
	}
	if err := b.hold.Held(); err != nil {
		return err
	}
	// After the log was copied: a feature is raised before the first entry that needs it.
	if f := b.s.Log.Features() &^ notCopied; f != 0 {
		b.info.Format, b.info.Features = BackupFormat, fmt.Sprintf("%016x", uint64(f))
	}
	manifest, err := encodeInfo(&b.info)
	if err != nil {
		return err
	}
	folders := append(kind.FoldersOf(b.s.Log.Features()), backupWAL)
	if b.info.Computed != nil {
		folders = append(folders, path.Dir(places.Computed))
	}
	return b.f.finish(ctx, &b.info, manifest, folders)
}

// documents copies each document with the time of its file, and writes the hash of the document to the backup's list.
//
// It copies the version that is the newest at the time of copying. The copied log begins at the position up to which
// the store's files were flushed before, so the log has all later changes. But if a newer version was copied, or the
// document was deleted and no version was copied, the backup lacks the previous version. So documents raises the field
// whole: the backup is complete only for moments from that position on.
func (b *backup) documents(ctx context.Context) error {
	list, err := b.f.create(backupList)
	if err != nil {
		return err
	}
	defer list.Close()
	sum := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(list, sum), 64<<10)
	if err := b.s.CatchUp(ctx); err != nil {
		return err
	}
	for _, d := range b.s.Documents {
		n := int64(0)
		if err := b.copy(ctx, out, d.Kind, d.IDs, d.Read, &n); err != nil {
			return err
		}
		counted(d.Kind.Folder, n, &b.info.Memories, &b.info.Assemblies, &b.info.Others)
	}
	if err := b.copy(ctx, out, kind.Scopes, b.s.ScopeKeys, b.s.ReadScope, &b.info.Scopes); err != nil {
		return err
	}
	err = out.Flush()
	if err == nil {
		err = list.Sync()
	}
	b.info.List = hex.EncodeToString(sum.Sum(nil))
	if b.o.Progress != nil {
		b.o.Progress(b.done, b.done)
	}
	return err
}

// counted adds n documents of a folder to the matching count of a report.
func counted(folder string, n int64, memories, assemblies *int64, others *map[string]int64) {
	switch {
	case folder == kind.Memories.Folder:
		*memories += n
	case folder == kind.Assemblies.Folder:
		*assemblies += n
	case n != 0:
		if *others == nil {
			*others = map[string]int64{}
		}
		(*others)[folder] += n
	}
}

// copy copies the documents of one kind, and adds the number of copied documents to count. Several goroutines read the
// documents. The goroutine of the caller passes them to backup.take in the order of ids.
func (b *backup) copy(ctx context.Context, out io.Writer, k *kind.Kind,
	ids func(context.Context) iter.Seq2[string, error], read func(context.Context, string) (Document, error),
	count *int64) error {
	began, folder := false, k.Folder
	size := func(c copied) int64 { return int64(len(c.Bytes)) }
	ahead := newAhead(workersFor(b.s.Count), size, func(id string) (c copied, err error) {
		if c.Document, err = read(ctx, id); err != nil {
			return c, err
		}
		c.name, c.hash = folder+"/"+k.FileName(id), sha256.Sum256(c.Bytes)
		c.writing = b.f.stage(c.name, &c.Document)
		return c, nil
	}, func(id string, c copied, err error) error { return b.take(out, k, id, c, err, count) })
	defer ahead.close()
	for id, err := range ids(ctx) {
		if err != nil {
			return err
		}
		if !began {
			// The list of ids was made before this: documents deleted since the flush are not in
			// it.
			b.whole, began = max(b.whole, b.s.Log.Applied()), true
		}
		if b.done%HeldEvery == 0 {
			if err := errors.Join(ctx.Err(), b.hold.Held()); err != nil {
				return err
			}
			if b.o.Progress != nil {
				b.o.Progress(b.done, max(b.done, b.s.Count))
			}
		}
		b.done++
		if err := ahead.add(id); err != nil {
			return err
		}
	}
	if !began {
		b.whole = max(b.whole, b.s.Log.Applied())
	}
	return ahead.finish()
}

// copied is a document that a worker has read.
type copied struct {
	Document
	name    string // path of the file in the backup
	hash    [sha256.Size]byte
	writing error // error of writing the file in the backup
}

// take adds a document, which a worker has read with the result c and err, to the backup and to the backup's list. It
// omits a document that was deleted meanwhile, and records one that is damaged.
func (b *backup) take(out io.Writer, k *kind.Kind, id string, c copied, err error, count *int64) error {
	switch {
	case errors.Is(err, errs.ErrNotFound):
		b.whole = max(b.whole, b.s.Log.Applied())
		return nil
	case errors.Is(err, errs.ErrCorrupt):
		d := repair.DamagedFile{ID: id, Why: err.Error()}
		if k != kind.Memories {
			d.In = k.Folder
		}
		b.info.Damaged = append(b.info.Damaged, d)
		return nil
	case err != nil:
		return fmt.Errorf("%s of %s: %w", k.Folder, human.Quote(id), err)
	case c.writing != nil:
		return c.writing
	}
	if c.Version >= b.from.LSN {
		b.whole = max(b.whole, c.Version+1)
	}
	mark := byte(' ')
	if k.Vectors && b.model.Older(c.Version, c.Vector) {
		mark = olderMark
	}
	if err := b.f.enter(c.name, mark, &c.Document, c.hash); err != nil {
		return err
	}
	if _, err := out.Write(appendListed(nil, c.name, mark, c.hash)); err != nil {
		return err
	}
	if c.By != 0 {
		if err := b.by.add(b.s.Writer(c.By, c.Version), c.name); err != nil {
			return err
		}
	}
	*count++
	b.info.Bytes += int64(len(c.Bytes))
	return nil
}

// appendListed appends the line of a file in files.sha256.
func appendListed(b []byte, name string, mark byte, hash [sha256.Size]byte) []byte {
	b = append(hex.AppendEncode(b, hash[:]), ' ', mark)
	return append(append(b, name...), '\n')
}

// write creates the file name in the new folder of the backup, with the content data and the modification time mtime.
func (n *newFolder) write(name string, data []byte, mtime time.Time) error {
	if err := n.enter(name); err != nil {
		return err
	}
	f, err := n.fs.OpenFile(n.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, n.mode)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil && !mtime.IsZero() {
		err = f.SetMtime(mtime)
	}
	if err == nil && n.barrier == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", n.path(name), err)
	}
	return nil
}

// log copies the segments of the log up to the mark end. The first segment is the one that contains the position up to
// which the store's files were flushed when the backup began.
func (b *backup) log(ctx context.Context, end wal.Mark) error {
	past := b.s.Log.Past()
	geo := geometryOf(&b.info)
	for number := geo.Number(b.from.LSN - 1); number <= geo.Number(end.LSN-1); number++ {
		if err := b.hold.Held(); err != nil {
			return err
		}
		if err := b.f.segment(segment.Name(number), func(out io.WriterAt) error {
			return past.CopySegment(ctx, number, end.LSN, out)
		}); err != nil {
			return fmt.Errorf("copying the log: %w", err)
		}
	}
	return nil
}

// moments reads the copied log completely, and sets the first and the last moment to which the backup can be restored.
// newest is the time of the newest commit in the checkpoint, in Unix microseconds, or 0 if there is no commit.
func (b *backup) moments(ctx context.Context, end wal.Mark, newest int64) error {
	past := b.f.log(&b.info)
	if err := checkLog(ctx, past, b.from, end); err != nil {
		return fmt.Errorf("verifying the copied log: %w", err)
	}
	start := geometryOf(&b.info).Start(geometryOf(&b.info).Number(b.from.LSN - 1))
	// A log that was recreated from the files has no commit yet. The time of the newest commit is
	// that of its frame, which may be ahead of the clock.
	if made := b.info.Made.UnixMicro(); newest == 0 || newest > made {
		newest = made
	}
	// If the segment has no entry before, the time of the last commit before it is unknown.
	b.info.First = repair.Moment{LSN: start, Time: time.UnixMicro(newest).UTC()}
	b.info.Last = b.info.First
	for e, err := range past.Entries(ctx, wal.Mark{LSN: start}, end.LSN) {
		if err != nil {
			return fmt.Errorf("verifying the copied log: %w", err)
		}
		at := repair.Moment{LSN: e.LSN, Time: e.Reading}
		if !state.Dated(&e) {
			// the entry of a document that the store has moved to quarantine has no time of its own
			at.Time = b.info.Last.Time
		}
		if e.LSN < b.whole {
			b.info.First = at
		}
		b.info.Last = at
	}
	return nil
}

// unread returns err, converted to a CorruptionError if it reports damage of the log.
func unread(err error) error {
	if c := (*errs.CorruptionError)(nil); errors.As(err, &c) {
		return err
	}
	if errors.Is(err, segment.ErrHeader) || errors.Is(err, segment.ErrPayload) || errors.Is(err, segment.ErrEnd) {
		return &errs.CorruptionError{Path: backupWAL, Offset: -1, Err: err}
	}
	return err
}

// checkLog verifies that the chain of the log leads from one mark (position and chain hash) to another.
func checkLog(ctx context.Context, past *past.Log, from, end wal.Mark) error {
	for _, err := range past.Entries(ctx, from, end.LSN) {
		if err != nil {
			return unread(err)
		}
	}
	for _, m := range []wal.Mark{from, end} {
		got, err := past.Chain(ctx, m.LSN)
		if err != nil {
			return fmt.Errorf("reading the log at position %d: %w", m.LSN, unread(err))
		}
		if got != m {
			return &errs.CorruptionError{Path: backupWAL, Offset: -1, LSN: m.LSN, Err: errors.New("chain hash mismatch")}
		}
	}
	return nil
}
