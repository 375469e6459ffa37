package page

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
)

// mostSelected is how many memories are forgotten or purged at once by the page.
const mostSelected = 500

// selected asks what to do with the memories that are marked in a list.
func (p *Page) selected(r *request) (*view, error) {
	switch r.get("what") {
	case "purge":
		return p.purgePlan(r)
	case "forget":
		return p.forget(r)
	}
	return nil, &refusal{http.StatusBadRequest, "the form names neither forget nor purge", "press one of the buttons"}
}

// plannedPurge is the data of the question before a purge.
type plannedPurge struct {
	Rows       []plannedRow
	Versions   int
	Assemblies []varve.Assembly
	Processes  int
	Changed    bool     // a memory has changed since a plan was shown
	Unread     []string // what cannot be read
}

type plannedRow struct {
	ID, Text string
	Version  uint64 // 0: the memory is deleted
	Versions int
}

// purgePlan shows what a purge removes. It changes nothing.
func (p *Page) purgePlan(r *request) (*view, error) {
	ids, err := r.ids()
	if err != nil {
		return nil, err
	}
	d := &plannedPurge{}
	note := func(err error) {
		if len(d.Unread) < MostRows {
			d.Unread = append(d.Unread, err.Error())
		}
	}
	in := map[string]bool{}
	for _, id := range ids {
		x := plannedRow{ID: id}
		if m, err := r.st.Get(r.ctx, id); err == nil {
			x.Version, x.Text = m.Version, shortened(visible(human.Head(m.Content, listText)), listText/2)
		} else if fatal(err) {
			return nil, err
		} else if !errors.Is(err, varve.ErrNotFound) {
			note(err)
		}
		for v, err := range r.st.History(r.ctx, id) {
			if err == nil && !v.Deleted {
				x.Versions++
			} else if err != nil && !errors.Is(err, varve.ErrNotFound) {
				note(err)
			}
		}
		for a, err := range r.st.Assemblies().Containing(r.ctx, id) {
			if err != nil {
				note(err)
				break
			}
			if !in[a.ID] {
				in[a.ID] = true
				d.Assemblies = append(d.Assemblies, a)
			}
		}
		d.Versions += x.Versions
		d.Rows = append(d.Rows, x)
	}
	d.Processes = max(0, len(r.st.Admin().Stats().Processes)-1)
	return &view{template: "purge", title: "Purge", data: d}, nil
}

// ids returns the memories that a form or a link names.
func (r *request) ids() ([]string, error) {
	ids := r.Form["id"]
	if len(ids) == 0 || len(ids) > mostSelected {
		return nil, &refusal{http.StatusBadRequest, count(len(ids), "memory is", "memories are") + " selected",
			"mark from 1 to 500 memories in the list; memctl forget and memctl purge take more"}
	}
	return ids, nil
}

// asPlanned reports whether each memory still has the version that the plan has shown.
func (r *request) asPlanned(ids []string) bool {
	versions := r.Form["version"]
	if len(versions) != len(ids) {
		return false
	}
	for i, id := range ids {
		m, err := r.st.Get(r.ctx, id)
		if err != nil {
			m.Version = 0
		}
		if versions[i] != strconv.FormatUint(m.Version, 10) {
			return false
		}
	}
	return true
}

// purged is the data of the report of a purge.
type purged struct {
	Report *varve.PurgeReport
	Left   []string // where traces may remain
	Notes  []string
}

// purge removes memories with all their traces. The form has to repeat the word, so that a click alone does not.
func (p *Page) purge(r *request) (*view, error) {
	ids, err := r.ids()
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(r.get("confirm")) != "purge" {
		return nil, &refusal{http.StatusBadRequest, "nothing was purged: the word was not repeated",
			"go back, and write purge into the field"}
	}
	if !r.asPlanned(ids) {
		v, err := p.purgePlan(r)
		if err != nil {
			return nil, err
		}
		if d, ok := v.data.(*plannedPurge); ok {
			d.Changed = true
		}
		v.status = http.StatusConflict
		return v, nil
	}
	report, err := r.st.Admin().Purge(r.ctx, ids...)
	if report == nil {
		return nil, err
	}
	d := &purged{Report: report}
	for _, e := range report.Left {
		d.Left = append(d.Left, e.Error())
	}
	if err != nil && len(d.Left) == 0 {
		d.Left = append(d.Left, err.Error())
	}
	for _, e := range report.Lost {
		d.Notes = append(d.Notes, "lost from the history of others: "+e.Error())
	}
	for _, f := range report.Mentions {
		d.Notes = append(d.Notes, "a file of yours has part of the text: "+visible(f.Path))
	}
	if report.Device != "" {
		d.Notes = append(d.Notes, report.Device)
	}
	for _, b := range report.Backup {
		d.Notes = append(d.Notes, "not covered: "+visible(b))
	}
	if n := len(report.Processes) + len(report.Elsewhere); n > 0 {
		d.Notes = append(d.Notes, count(n, "other process has", "other processes have")+
			" the store open: what was purged leaves their memory as they read on")
	}
	return &view{template: "purged", title: "Purged", data: d}, nil
}
