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

// Store is an open store that Apply repairs. Package varve implements it.
type Store interface {
	Source() view.Source
	// kind is the kind of the document: the first byte of its key in the log.

	// PutBack writes a document of the store to the document's file again. It moves the existing file to quarantine.
	PutBack(ctx context.Context, held *wal.Held, kind byte, id string, version wal.LSN, mtime time.Time, doc []byte) error
	// Adopt commits a document, byte for byte, as a new version. prev is the version that it replaces, or 0 if
	// the document has no version yet. If the document has another version by now, the error matches
	// errs.ErrConflict.
	Adopt(ctx context.Context, held *wal.Held, kind byte, id string, doc []byte, mtime time.Time,
		prev wal.LSN) (wal.LSN, error)
	// AdoptNew commits documents that the store does not have, in as few commits as possible.
	AdoptNew(ctx context.Context, held *wal.Held, kind byte, list []*Adoption)
	// Judge reads documents as any reader does, and records the result in each Judgement: an edited file is
	// adopted, many in one commit, or moved to quarantine if the edit is based on an older version than the
	// present one.
	Judge(ctx context.Context, kind byte, list []*Judgement)
	// Delete commits the deletion of a document, if prev is still the document's version.
	Delete(ctx context.Context, held *wal.Held, kind byte, id string, prev wal.LSN) error
	// Settle flushes everything committed so far to files and index, with all of the index in its
	// base, and checks the leftovers of ended processes in tmp/.
	Settle(ctx context.Context) error
	// Reindex rebuilds the index and moves the old one to backups/. It uses log and files, or, if wrong is set, only
	// the files: then the current index is sound but has wrong content.
	Reindex(ctx context.Context, wrong bool) error
	// RebuildVectors rebuilds the vectors from the embeddings of all documents. The existing vectors stay
	// until the new ones are complete.
	RebuildVectors(ctx context.Context) error
	// RebuildView rebuilds the files of a view from the index.
	RebuildView(ctx context.Context, folder string) error
	// RebuildScope rebuilds a scope of working memory from log and archive, if the scope's file cannot be used. It
	// returns a description of the result, or "" if the file can be used.
	RebuildScope(ctx context.Context, file string) (string, error)
	// RebuildAssembly removes the members with the ids memberIDs from an assembly, if prev is still the
	// assembly's version, and recomputes the composite embedding from the remaining members. It returns the new
	// version.
	RebuildAssembly(ctx context.Context, held *wal.Held, id string, prev wal.LSN, memberIDs []string) (wal.LSN, error)
	Close() error
}

// Adoption is a document that AdoptNew commits, with the result of the commit.
type Adoption struct {
	ID      string
	Doc     []byte
	Mtime   time.Time
	Version wal.LSN
	Err     error
}

// Judgement is a document that Judge reads, with the result of examining the document's file.
type Judgement struct {
	ID      string
	Was     wal.LSN // the version on which the adopted edit was based
	Version wal.LSN // the version that the edit became; 0: the edit was not adopted, or its version is unknown
	Err     error   // the error of reading the document
}

// Options are the parameters of Plan besides the folder. Package varve sets them.
type Options struct {
	// Open opens the store. With readOnly it changes nothing on disk. Otherwise it may rebuild log
	// and index, as every open does.
	Open func(ctx context.Context, readOnly bool) (Store, error)
	// Config returns an error that describes what is wrong with the text of a config.json, or nil.
	Config func(text []byte) error

	FS         vfs.FS
	Clock      func() time.Time
	FileMode   fs.FileMode
	FolderMode fs.FileMode
	// Random fills the nonce of a new log; a seeded source makes runs repeatable.
	Random func([]byte) error
	// Known are features that the store may have besides those that package wal knows.
	Known wal.Features
	// LockWait is the maximum time to wait for open.lock.
	LockWait time.Duration
	Explain  func(error) error // adds a remedy to a system error
	// Verify has the options with which the store is verified. If Part and Parts are set, the plan is for a sample.
	Verify repair.VerifyOptions
}

// Plan verifies a store and returns the actions that would repair it. It changes nothing.
func Plan(ctx context.Context, dir string, o Options) (*repair.RepairPlan, error) {
	p := repair.NewPlan(dir, o.apply)
	for _, step := range []func(context.Context, *repair.RepairPlan) error{o.look, o.countLost} {
		if err := step(ctx, p); err != nil {
			return p, o.Explain(err)
		}
	}
	return p, nil
}

// Look verifies the store in a folder, even if it cannot be opened.
func Look(ctx context.Context, dir string, o Options) iter.Seq2[repair.Finding, error] {
	return diagnose.Look(ctx, dir, o.ground(), nil)
}

// ground returns the options for package diagnose, which can also examine a store that cannot be opened.
func (o *Options) ground() diagnose.Options {
	open := func(ctx context.Context) (diagnose.Store, error) { return o.Open(ctx, true) }
	return diagnose.Options{Open: open, Config: o.Config, FS: o.FS, Verify: o.Verify}
}

// split returns the ids of the processes in list. pids has those in the PID namespace of this process, and elsewhere
// those in other PID namespaces. unsure has those of pids for which it is unknown whether the process still runs.
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

// look verifies the store and turns the findings into actions of the plan.
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
