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

// tries is the number of times that a mismatch is checked before it is reported.
const tries = 4

// Findings verifies the store and yields what is wrong. An error ends the sequence: ctx ended, or a
// file could not be read at all. Each finding is true at some moment between the start and the end.
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
			wait := v.runConcurrently(func(log *Run) error {
				return log.steps(log.log, log.archive, log.overlay, log.backups, log.purges, log.writers, log.vectorFiles)
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

// runConcurrently runs a part of the verification in a goroutine of its own, while the caller continues. It keeps
// the findings of this part. The returned function wait waits for the goroutine and reports the findings;
// listening is false if the caller of Findings has stopped the iteration. With only one worker there is no such
// goroutine, and wait runs the part unless listening is false.
func (v *Run) runConcurrently(part func(*Run) error) (wait func(listening bool) error) {
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

// keptMost is the maximum number of findings in log and archive that are kept while the files are
// read.
const keptMost = 100_000

// Run is one verification of a store.
type Run struct {
	ctx     context.Context
	Source  view.Source
	Past    *past.Reader
	o       repair.VerifyOptions
	yield   func(repair.Finding, error) bool
	sum     *repair.Summary
	Folders []*docfile.Folder          // the folders of documents, by kind
	names   []func() ([]string, error) // the names in the folders, by kind, listed once

	marks []wal.Mark // positions in the checkpoint, each of which must be the end of a frame of the log
	// A process verifies each block only once. So if the index turns out to be damaged (indexBad), lines are read from
	// sound, a second set of index files in which no block was verified yet; sound is nil if that set cannot be loaded.
	indexBad bool
	sound    *index.Set

	vectors     *vectors // the data with which documents are compared; nil: documents are not compared
	unembedded  *unembedded
	suspects    []*repair.Finding // see revived
	done, total int64
}

// New prepares a verification of an open store. yield may be nil if only single documents are checked.
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

var errStopped = errors.New("the caller has stopped the verification")

// report counts a finding and yields it. The error is errStopped if the caller has stopped the iteration. If the check
// failed only because this process lacked a resource, report returns that error and yields nothing.
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
