package heal

import (
	"context"
	"io/fs"
	"iter"
	"time"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/repairs/diagnose"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// Store is an open store, as Apply works on it. The root implements it.
type Store interface {
	Source() view.Source
	// kind is that of the document: the first byte of its key in the log.

	// PutBack puts a document that the store knows into its file again. What stands there is set
	// aside.
	PutBack(ctx context.Context, held *wal.Held, kind byte, id string, version wal.LSN, mtime time.Time, doc []byte) error
	// Adopt takes a document, byte for byte, into the log as a new version over
	// version was (0: there is none); errs.ErrConflict when it is another by now.
	Adopt(ctx context.Context, held *wal.Held, kind byte, id string, doc []byte, mtime time.Time,
		was wal.LSN) (wal.LSN, error)
	// AdoptNew takes documents that are not there yet in as few commits as may be.
	AdoptNew(ctx context.Context, held *wal.Held, kind byte, list []*Adoption)
	// Judge reads documents as everybody does, and says what became of each: an edited file
	// is adopted, many in one commit, or set aside if it was made of an older version than
	// the present one.
	Judge(ctx context.Context, kind byte, list []*Judgement)
	// Delete writes a document's deletion into the log, if its version is still this one.
	Delete(ctx context.Context, held *wal.Held, kind byte, id string, was wal.LSN) error
	// Settle makes files and index durable up to now, all of the index in its base,
	// and looks through what processes left in tmp/.
	Settle(ctx context.Context) error
	// Reindex rebuilds the index from log and files, or, where the current one is sound but wrong,
	// from the files only. The old one goes to backups/.
	Reindex(ctx context.Context, wrong bool) error
	// RebuildVectors rebuilds the vectors from the embeddings of all documents. Those that stand stay
	// until the new ones are complete.
	RebuildVectors(ctx context.Context) error
	// RebuildView makes the files of a view again, from the index.
	RebuildView(ctx context.Context, folder string) error
	// RebuildScope rebuilds a scope of working memory whose file cannot be used from what log and archive
	// have of it, and says how much that was; "" when the file can be used after all.
	RebuildScope(ctx context.Context, file string) (string, error)
	// RebuildAssembly takes members out of an assembly, if its version is still this one, and
	// gives it the composite of those that are left.
	RebuildAssembly(ctx context.Context, held *wal.Held, id string, was wal.LSN, out []string) (wal.LSN, error)
	Close() error
}

// Adoption is a document that AdoptNew takes in, and what became of it.
type Adoption struct {
	ID      string
	Doc     []byte
	Mtime   time.Time
	Version wal.LSN
	Err     error
}

// Judgement is a document that Judge reads, and what became of its file.
type Judgement struct {
	ID      string
	Was     wal.LSN // the version that an edit was adopted over
	Version wal.LSN // as which; 0: it was not, or nobody can say
	Err     error   // of reading it
}

// Options is what Plan needs besides the folder. The root fills them.
type Options struct {
	// Open opens the store; readOnly changes nothing on disk. Otherwise it may rebuild log and
	// index, as every opening does.
	Open func(ctx context.Context, readOnly bool) (Store, error)
	// Config says what is wrong with the text of a config.json.
	Config func(text []byte) error

	FS         vfs.FS
	Clock      func() time.Time
	FileMode   fs.FileMode
	FolderMode fs.FileMode
	// Random fills the nonce of a new log; its source decides whether runs repeat.
	Random func([]byte) error
	// Known are features of the store, besides those that package wal knows.
	Known wal.Features
	// LockWait bounds the wait for open.lock.
	LockWait time.Duration
	Explain  func(error) error // adds to an error of the system what helps
	// Verify is how the store is looked at; Part and Parts plan for a sample.
	Verify repair.VerifyOptions
}

// Plan looks at a store and says what would heal it. It changes nothing.
func Plan(ctx context.Context, dir string, o Options) (*repair.RepairPlan, error) {
	p := repair.NewPlan(dir, o.apply)
	for _, step := range []func(context.Context, *repair.RepairPlan) error{o.look, o.countLost} {
		if err := step(ctx, p); err != nil {
			return p, o.Explain(err)
		}
	}
	return p, nil
}

// Look verifies the store in a folder, also one that cannot be opened.
func Look(ctx context.Context, dir string, o Options) iter.Seq2[repair.Finding, error] {
	return diagnose.Look(ctx, dir, o.ground(), nil)
}

// ground is what looking at a store needs that perhaps cannot be opened.
func (o *Options) ground() diagnose.Options {
	open := func(ctx context.Context) (diagnose.Store, error) { return o.Open(ctx, true) }
	return diagnose.Options{Open: open, Config: o.Config, FS: o.FS, Verify: o.Verify}
}

// split returns the ids of processes, of these those that may be dead, and the ids of those of another PID
// namespace.
func split(list []wal.Attached) (pids, unsure, elsewhere []int) {
	for _, a := range list {
		if a.Elsewhere {
			elsewhere = append(elsewhere, a.PID)
			continue
		}
		pids = append(pids, a.PID)
		if a.Life == vfs.Unknown {
			unsure = append(unsure, a.PID)
		}
	}
	return pids, unsure, elsewhere
}

// look verifies the store and makes actions of what it finds.
func (o Options) look(ctx context.Context, p *repair.RepairPlan) error {
	o.Verify.Summary = &p.Summary
	found := diagnose.Look(ctx, p.Dir, o.ground(),
		func(s view.Source) { p.Processes, p.Unsure, p.Elsewhere = split(s.Log.Processes().All()) })
	if err := p.SetFindings(found); err != nil {
		return err
	}
	return o.judgeFiles(ctx, p)
}

func (o *Options) changer(dir string) *changer {
	return newChanger(o.layout(dir), o.fileMode(), o.Clock)
}

func (o *Options) layout(dir string) docfile.Layout {
	return docfile.Layout{FS: o.FS, Root: dir, FileMode: o.FileMode, FolderMode: o.FolderMode}
}

func (o *Options) fileMode() fs.FileMode {
	if o.FileMode == 0 {
		return 0o600
	}
	return o.FileMode
}
