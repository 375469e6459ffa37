package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"sync"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/repairs/past"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// tries is how often what does not match is looked at before it is reported.
const tries = 4

// Findings reads the store and yields what it finds. An error ends it: ctx ended,
// or something could not be read at all. What it says is true of some moment
// between its start and its end.
func Findings(ctx context.Context, s view.Source, o repair.VerifyOptions) iter.Seq2[repair.Finding, error] {
	return func(yield func(repair.Finding, error) bool) {
		if err := o.Validate(); err != nil {
			yield(repair.Finding{}, err)
			return
		}
		v := New(ctx, s, o, yield)
		defer func() {
			if v.sound != nil {
				_ = v.sound.Release()
			}
		}()
		if v.o.Workers > 1 { // listing takes as long as reading the index
			for _, names := range v.names {
				go func() { _, _ = names() }()
				defer func() { _, _ = names() }()
			}
		}
		err := v.steps(v.folders, v.config, v.checkpoint, v.index)
		if err == nil {
			wait := v.beside(func(log *Run) error {
				return log.steps(log.log, log.archive, log.overlay, log.backups, log.purges, log.vectorFiles)
			})
			err = v.files()
			if werr := wait(err == nil); err == nil {
				err = werr
			}
		}
		if err == nil {
			err = v.steps(v.scopes, v.views, v.temp, v.quarantine)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(repair.Finding{}, err)
		}
	}
}

func (v *Run) steps(list ...func() error) error {
	for _, step := range list {
		err := v.ctx.Err()
		if err == nil {
			err = step()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// beside begins a part of the run in a goroutine of its own, where these may be
// started, while the caller's goes on. What it finds is kept, and reported by the
// function that is returned: its argument says whether anybody still listens.
func (v *Run) beside(part func(*Run) error) (wait func(listening bool) error) {
	if v.o.Workers < 2 {
		return func(listening bool) error {
			if !listening {
				return nil
			}
			return part(v)
		}
	}
	ctx, cancel := context.WithCancel(v.ctx)
	var list []repair.Finding
	other := *v
	other.Past = past.New(ctx, v.Source)
	other.ctx, other.o.Progress, other.done, other.total, other.suspects = ctx, nil, 0, 0, nil
	other.sum = &repair.Summary{Findings: map[repair.Kind]int64{}}
	other.yield = func(f repair.Finding, _ error) bool {
		list = append(list, f)
		return len(list) < keptMost
	}
	ended := make(chan error, 1)
	go func() { ended <- part(&other) }()
	return func(listening bool) error {
		if !listening {
			cancel()
		}
		err := <-ended
		cancel()
		v.sum.Vectors = max(v.sum.Vectors, other.sum.Vectors)
		v.sum.Segments, v.sum.Archived, v.sum.Entries, v.sum.Bytes = v.sum.Segments+other.sum.Segments,
			v.sum.Archived+other.sum.Archived,
			v.sum.Entries+other.sum.Entries, v.sum.Bytes+other.sum.Bytes
		if !listening {
			return nil
		}
		v.total += other.total
		v.progress(other.done)
		for _, f := range list {
			if err := v.report(f); err != nil {
				return err
			}
		}
		if errors.Is(err, errStopped) {
			err = fmt.Errorf("log and archive have more than %d faults; only the first are reported", keptMost)
		}
		return err
	}
}

// keptMost bounds what is found in log and archive while the files are read.
const keptMost = 100_000

// Run is one run.
type Run struct {
	ctx     context.Context
	Source  view.Source
	Past    *past.Reader
	o       repair.VerifyOptions
	yield   func(repair.Finding, error) bool
	sum     *repair.Summary
	Folders []*docfile.Folder          // of each kind
	names   []func() ([]string, error) // in them, listed once

	marks []wal.Mark // of the checkpoint, to be met in the log
	// A process believes a block that it has once checked. When the index turns
	// out to be damaged, lines are asked of a set that has checked none: nil when
	// there is none that can be loaded.
	indexBad bool
	sound    *index.Set

	vectors     *vectors // what documents are compared with; nil: nothing
	unembedded  *unembedded
	suspects    []*repair.Finding // see revived
	done, total int64
}

// New begins a run over an open store. yield is nil where only single documents are judged.
func New(ctx context.Context, s view.Source, o repair.VerifyOptions, yield func(repair.Finding, error) bool) *Run {
	v := &Run{ctx: ctx, Source: s, Past: past.New(ctx, s), o: o, yield: yield, sum: o.Summary, unembedded: new(unembedded)}
	if v.o.Workers == 0 {
		v.o.Workers = 2
	}
	if s.Inline {
		v.o.Workers = 1
	}
	if v.sum == nil {
		v.sum = new(repair.Summary)
	}
	*v.sum = repair.Summary{Findings: map[repair.Kind]int64{}}
	for _, k := range kind.Kinds {
		folder := k.In(docfile.Layout{FS: s.FS, Root: s.Dir})
		names := folder.Names
		if v.o.Workers > 1 {
			names = sync.OnceValues(names)
		}
		v.Folders, v.names = append(v.Folders, folder), append(v.names, names)
	}
	return v
}

var errStopped = errors.New("the caller has seen enough")

// report hands a finding to the caller.
func (v *Run) report(f repair.Finding) error {
	if err := f.Unread(); err != nil {
		return err
	}
	v.sum.Findings[f.Kind]++
	v.sum.Worst = max(v.sum.Worst, f.Severity)
	if !v.yield(f, nil) {
		return errStopped
	}
	return nil
}

func (v *Run) views() (err error) {
	for f := range v.Source.Views(v.ctx) {
		if err = v.report(f); err != nil {
			break
		}
	}
	return err
}

func (v *Run) progress(done int64) {
	v.done += done
	v.total = max(v.total, v.done)
	if v.o.Progress != nil {
		v.o.Progress(v.done, v.total)
	}
}

func (v *Run) path(elem ...string) string {
	return filepath.Join(append([]string{v.Source.Dir}, elem...)...)
}

func (v *Run) config() error {
	var err error
	for range tries {
		if err = v.Source.Config(); err == nil {
			return nil
		}
	}
	return v.report(repair.Finding{
		Kind: repair.ConfigInvalid, Severity: repair.Healable, Path: "config.json", Offset: -1, Err: err,
		Stake: "limits and intervals: the last valid ones or the defaults apply", Heals: repair.ByDefaults,
		Next: repair.NextRepair,
	})
}
