package heal

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/repairs/verify"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// rounds is the maximum number of times that Apply verifies the store again: a repair can reveal faults that
// another fault hid (a rebuilt index shows the files that belong to no document).
const rounds = 6

// repairer is one run of Apply.
type repairer struct {
	*changer
	ctx    context.Context
	o      Options
	report *repair.RepairReport
	tried  map[string]bool
	bare   bool // an object was moved away from the path of a folder; it may have held the only copy of documents
}

// apply carries out a plan of repairs.
func (o Options) apply(ctx context.Context, p *repair.RepairPlan) (_ *repair.RepairReport, err error) {
	r := &repairer{ctx: ctx, changer: o.changer(p.Dir), o: o, report: &repair.RepairReport{}, tried: map[string]bool{}}
	defer func() { err = o.Explain(err) }()
	plan := *p
	for range rounds {
		todo := r.untried(plan.Actions)
		if len(todo) == 0 {
			break
		}
		if err := r.round(todo); err != nil {
			return r.report, err
		}
		if err := o.look(ctx, &plan); err != nil {
			return r.report, fmt.Errorf("verifying the store after the repair: %w", err)
		}
	}
	r.remaining(&plan)
	return r.report, nil
}

// untried returns the actions in list that this repair has not tried before. If the repair has removed a link from the
// path of a folder such as memories/, untried also omits actions that give up data, because the folder to which the
// link led may have the data. These actions are reported, and a later repair can carry them out.
func (r *repairer) untried(list []repair.Action) (todo []repair.Action) {
	for _, a := range list {
		if r.bare && a.Loses != "" {
			continue
		}
		key := fmt.Sprint(a.Do, "\x00", a.Path, "\x00", a.ID)
		if !r.tried[key] {
			r.tried[key] = true
			todo = append(todo, a)
		}
	}
	return todo
}

func (r *repairer) remaining(p *repair.RepairPlan) {
	r.report.Summary = p.Summary
	for _, a := range p.Actions {
		r.report.Remaining = append(r.report.Remaining, a.Findings...)
	}
	for _, f := range p.Left {
		if f.Kind != repair.Quarantined && f.Kind != repair.HistoryGap {
			r.report.Remaining = append(r.report.Remaining, f)
		}
	}
	for _, f := range r.report.Remaining {
		r.report.Worst = max(r.report.Worst, f.Severity)
	}
}

// round carries out a list of actions. First it carries out the actions for which no other process may have the store
// open, then the other actions.
func (r *repairer) round(todo []repair.Action) error {
	var out []repair.Action
	for _, a := range todo {
		if a.Do == repair.MoveOut {
			out = append(out, a)
		}
	}
	if len(out) > 0 {
		return r.reshape(out) // the rest can be verified afterwards
	}
	if err := r.room(); err != nil {
		return err
	}
	var room, alone, live []repair.Action
	for _, a := range todo {
		switch {
		case a.Do == repair.MakeRoom:
			room = append(room, a)
		case a.Alone:
			alone = append(alone, a)
		default:
			live = append(live, a)
		}
	}
	if err := r.makeRoom(room); err != nil {
		return err
	}
	if len(alone) == 0 && len(live) == 0 {
		return nil
	}
	if len(alone) > 0 {
		err := r.alone(alone)
		if errors.Is(err, errs.ErrLocked) {
			r.report.Waiting = append(r.report.Waiting, alone...)
			if len(live) == 0 {
				return err
			}
		} else if err != nil {
			return err
		}
	}
	return r.live(live)
}

// alone carries out actions while it holds open.lock and attach.lock exclusively, so that no other
// process has the store open or opens it.
func (r *repairer) alone(list []repair.Action) error {
	if err := r.o.layout(r.dir).Folder("wal").Make(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.o.LockWait)
	defer cancel()
	release, ok, err := wal.LockExclusive(r.o.FS, r.dir, r.o.Known, r.o.fileMode(),
		func(k vfs.Lock) error { return k.Lock(ctx, vfs.ModeExclusive) })
	if err != nil {
		if ctx.Err() != nil && r.ctx.Err() == nil {
			err = &errs.LockError{Path: r.path("wal", "open.lock"), Err: err}
		}
		return err
	}
	if !ok {
		list := r.attached()
		r.report.Processes, r.report.Unsure, r.report.Elsewhere = split(list)
		return &errs.LockError{Path: r.path("wal", "attach.lock"),
			Err: fmt.Errorf("processes %v have the store open → stop them, then run memctl repair again", list)}
	}
	defer release()
	for _, a := range list {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		d := repair.Done{Action: a}
		switch a.Do {
		case repair.FixConfig:
			err = r.fixConfig(&d)
		case repair.NewMarks:
			err = r.newMarks(&d)
		case repair.NewLog:
			err = r.newLog(&d)
		case repair.SetSegment:
			err = r.retire(&d)
		case repair.SetIndexAside:
			err = r.indexAside(&d)
		case repair.SetAside:
			err = r.asideOfLog(&d)
		case repair.Reopen:
			d.Result = "repaired when the store was opened"
			if a.Path == index.BaseName {
				err = errors.Join(r.keepFor(&d, index.BaseName), r.keepFor(&d, index.DeltaName))
			}
		}
		if err := r.done(d, err); err != nil {
			return err
		}
	}
	return nil
}

// done records a repair action and its result err. It returns err only if the repair cannot usefully continue after
// that error.
func (r *repairer) done(d repair.Done, err error) error {
	if errors.Is(err, errNothing) {
		d.Result, err = err.Error(), nil
	}
	d.Err = r.o.Explain(err)
	r.report.Done = append(r.report.Done, d)
	switch {
	case err == nil:
		return nil
	case r.ctx.Err() != nil, vfs.IsDiskFull(err), vfs.IsPermission(err), errors.Is(err, errs.ErrClosed):
		return err
	}
	return nil
}

// token returns the name of the folder in tmp/ that the repair uses for its files.
func (r *repairer) token() string {
	var salt [3]byte
	_ = r.o.Random(salt[:]) // without salt the time makes the name unique
	return "repair-" + strings.Replace(r.clock().UTC().Format("20060102-150405.000000"), ".", "-", 1) + "-" +
		hex.EncodeToString(salt[:])
}

// attached returns the processes that have the store open now, or nil if the store cannot be opened.
func (r *repairer) attached() []wal.Attached {
	s, err := r.o.Open(r.ctx, true)
	if err != nil {
		return nil
	}
	defer func() { _ = s.Close() }()
	return s.Source().Log.Processes().All()
}

// live opens the store and carries out actions on it, while other processes may have it open.
func (r *repairer) live(list []repair.Action) error {
	s, err := r.o.Open(r.ctx, false)
	if err != nil {
		return fmt.Errorf("opening the store for the repair: %w", err)
	}
	src := s.Source()
	h := &healer{r: r, s: s, v: verify.New(r.ctx, src, repair.VerifyOptions{Workers: 1}, nil)}
	for len(list) > 0 && err == nil {
		if err = r.ctx.Err(); err != nil {
			break
		}
		n := together(list)
		err = r.heal(h, list[:n])
		list = list[n:]
	}
	if err == nil && src.Log.Damage() == nil {
		err = s.Settle(r.ctx)
	}
	return errors.Join(err, s.Close())
}

// heal carries out a group of actions: either one action, or several actions that adopt files together.
func (r *repairer) heal(h *healer, list []repair.Action) error {
	done := make([]*repair.Done, len(list))
	for i, a := range list {
		done[i] = &repair.Done{Action: a}
	}
	var fails []error
	if list[0].Do == repair.Adopt {
		fails = h.adoptAll(done)
	} else {
		fails = []error{h.heal(done[0])}
	}
	for i, d := range done {
		if err := r.done(*d, fails[i]); err != nil {
			return err
		}
	}
	return nil
}
