package page

import (
	"net/http"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
)

// mostSelected is how many memories are forgotten or purged at once by the page.
const mostSelected = 500

// selected asks what to do with the memories that are marked in a list.
func (p *Page) selected(r *request) (*view, error) {
	if r.get("what") == "purge" {
		return p.purgePlan(r)
	}
	return p.forget(r)
}

// plannedPurge is the data of the question before a purge.
type plannedPurge struct {
	Rows       []plannedRow
	Versions   int
	Assemblies []varve.Assembly
	Processes  int
	HistoryToo string // how much history is searched
}

type plannedRow struct {
	ID, Text string
	Deleted  bool
	Versions int
}

// purgePlan shows what a purge removes. It changes nothing.
func (p *Page) purgePlan(r *request) (*view, error) {
	ids := r.Form["id"]
	if len(ids) == 0 || len(ids) > mostSelected {
		return nil, &refusal{http.StatusBadRequest, count(len(ids), "memory is", "memories are") + " selected",
			"mark from 1 to 500 memories in the list; memctl purge takes more"}
	}
	d := &plannedPurge{}
	in := map[string]bool{}
	for _, id := range ids {
		x := plannedRow{ID: id, Deleted: true}
		if m, err := r.st.Get(r.ctx, id); err == nil {
			x.Deleted, x.Text = false, shortened(visible(human.Head(m.Content, listText)), listText/2)
		} else if fatal(err) {
			return nil, err
		}
		for v, err := range r.st.History(r.ctx, id) {
			if err == nil && !v.Deleted {
				x.Versions++
			}
		}
		for a, err := range r.st.Assemblies().Containing(r.ctx, id) {
			if err != nil {
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
	n := r.st.Admin().Stats()
	d.Processes, d.HistoryToo = max(0, len(n.Processes)-1), human.Bytes(n.HistoryBytes)
	return &view{template: "purge", title: "Purge", data: d}, nil
}

// purged is the data of the report of a purge.
type purged struct {
	Report *varve.PurgeReport
	Left   []string // where traces may remain
	Notes  []string
}

// purge removes memories with all their traces. The form has to repeat the word, so that a click alone does not.
func (p *Page) purge(r *request) (*view, error) {
	ids := r.Form["id"]
	if strings.TrimSpace(r.get("confirm")) != "purge" {
		return nil, &refusal{http.StatusBadRequest, "nothing was purged: the word was not repeated",
			"go back, and write purge into the field"}
	}
	if len(ids) == 0 {
		return nil, &refusal{http.StatusBadRequest, "nothing is selected", "mark memories in the list"}
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
