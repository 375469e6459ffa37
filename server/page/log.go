package page

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/varve-db/varve"
)

// newestSessions returns all sessions, the most recently written session first.
func (p *Page) newestSessions(r *request) (all []varve.Session, err error) {
	for s, err := range r.st.Sessions().All(r.ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b varve.Session) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// shownLog is the template data of the list of commits.
type shownLog struct {
	Rows    []shownCommit
	By      string
	Session string
	ID      string
	Next    string
	Unread  []string
}

type shownCommit struct {
	varve.Commit
	More int // number of changes that are not shown
}

// mostChanges is the maximum number of changes of a commit that the log shows.
const mostChanges = 8

func (p *Page) log(r *request) (*view, error) {
	d := &shownLog{By: r.get("by"), Session: r.get("session"), ID: r.get("id")}
	o := varve.LogOptions{By: d.By}
	if d.Session != "" {
		o.Session = &d.Session
	}
	if d.ID != "" {
		o.ID = &d.ID
	}
	o.Before, _ = strconv.ParseUint(r.get("before"), 10, 64) // 0: all
	for c, err := range r.st.Log(r.ctx, o) {
		if err != nil {
			if fatal(err) || r.ctx.Err() != nil || errors.Is(err, varve.ErrNotFound) {
				return nil, err
			}
			if d.Unread = append(d.Unread, err.Error()); len(d.Unread) > MostRows {
				break
			}
			continue
		}
		x := shownCommit{Commit: c}
		if n := len(c.Changes); n > mostChanges {
			x.Changes, x.More = c.Changes[:mostChanges], n-mostChanges
		}
		if d.Rows = append(d.Rows, x); len(d.Rows) == MostRows {
			d.Next = link("log", "by", d.By, "session", d.Session, "id", d.ID, "before", strconv.FormatUint(c.LSN,
				10))
			break
		}
	}
	return &view{template: "log", title: "Log", data: d}, nil
}

// shownWriters is the template data of the list of writers.
type shownWriters struct {
	Rows []varve.Writer
	More bool
}

func (p *Page) writers(r *request) (*view, error) {
	all, err := r.st.Admin().Writers(r.ctx)
	if err != nil {
		return nil, err
	}
	slices.Reverse(all) // the newest first
	all = slices.DeleteFunc(all, func(w varve.Writer) bool { return w.Undo != "" })
	d := &shownWriters{Rows: all}
	if d.More = len(all) > 4*MostRows; d.More {
		d.Rows = all[:4*MostRows]
	}
	return &view{template: "writers", title: "Writers", data: d}, nil
}

// plannedUndo is the template data of the view that asks whether to undo commits, and of the view of the result.
type plannedUndo struct {
	Plan    *varve.UndoPlan
	By      string
	Changes []varve.UndoChange // the first changes that the undo would make
	More    int
	Unread  []string
	Done    string // description of the changes that were undone; "": nothing was, this is a plan
	// Interrupted means that an error has ended the undo between two of its commits. The same undo can be run again to
	// continue.
	Interrupted bool
	unsaved
}

func undoOptions(r *request) (o varve.UndoOptions, err error) {
	o.Run = r.get("run")
	o.Position, _ = strconv.ParseUint(r.get("position"), 10, 64)
	o.Before, _ = strconv.ParseUint(r.get("before"), 10, 64)
	o.Partial = r.get("partial") != ""
	if o.Run == "" && o.Position == 0 {
		return o, &refusal{http.StatusBadRequest, "the link names neither a commit nor a run",
			"choose a commit in the log"}
	}
	return o, nil
}

func plannedOf(plan *varve.UndoPlan) *plannedUndo {
	d := &plannedUndo{Plan: plan, By: plan.Run, Changes: plan.Changes}
	if n := len(plan.Changes); n > 2*MostRows {
		d.Changes, d.More = plan.Changes[:2*MostRows], n-2*MostRows
	}
	for _, err := range plan.Unread {
		d.Unread = append(d.Unread, err.Error())
	}
	return d
}

func planView(plan *varve.UndoPlan) *view {
	return &view{template: "undo", title: "Undo", data: plannedOf(plan)}
}

// undoPlan shows what an undo would do, and asks for confirmation. It does not change the store.
func (p *Page) undoPlan(r *request) (*view, error) {
	o, err := undoOptions(r)
	if err != nil {
		return nil, err
	}
	plan, err := r.st.PlanUndo(r.ctx, o)
	if err != nil && plan == nil {
		return nil, err
	}
	return planView(plan), nil
}

func (p *Page) undo(r *request) (*view, error) {
	o, err := undoOptions(r)
	if err != nil {
		return nil, err
	}
	plan, err := r.st.Undo(r.ctx, o)
	if in := (*varve.UndoError)(nil); errors.As(err, &in) && in.Plan.Done == 0 && !o.Partial {
		v := planView(&in.Plan)
		v.status = http.StatusConflict
		return v, nil
	}
	if err != nil && (plan == nil || plan.Done == 0) {
		return nil, err
	}
	said := "Took back " + count(plan.Done, "change", "changes")
	if err == nil && len(plan.Conflicts) == 0 && len(plan.Unread) == 0 {
		return &view{said: said, goTo: link("log")}, nil
	}
	return undoneInPart(plan, err, said), nil
}

// undoneInPart returns the view after an undo that made only a part of its changes: it shows the changes that were
// made, those that were not, and the reasons. err is nil or a *varve.UndoError if only the documents with conflicts
// were left unchanged; any other error interrupted the undo.
func undoneInPart(plan *varve.UndoPlan, err error, said string) *view {
	d := plannedOf(plan)
	v := &view{template: "undo", title: "Undone in part", said: said, data: d}
	d.Done, d.Interrupted = said, err != nil && !errors.As(err, new(*varve.UndoError))
	if d.Interrupted {
		d.unsaved, v.status = because(err)
	}
	return v
}
