package page

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
)

// mostSelected is the maximum number of memories that the page deletes or purges in one request.
const mostSelected = 500

// selected deletes the memories that were selected in a list, or asks whether to purge them. Deleted memories can be
// restored later.
func (p *Page) selected(r *request) (*view, error) {
	switch r.get("what") {
	case "purge":
		return p.purgePlan(r)
	case "forget":
		return p.forget(r)
	}
	return nil, &refusal{http.StatusBadRequest, "the form must name the action: forget or purge",
		"press one of the buttons"}
}

// removable describes a kind of documents that the page can purge: memories, notes or assemblies.
type removable struct {
	kind, one, more string
	view, param     string // name of the view of a document, and of its parameter with the id
	// newest returns the newest version of a document and the beginning of its text.
	newest  func(ctx context.Context, id string) (version uint64, text string, err error)
	history func(ctx context.Context, id string) iter.Seq2[varve.Version, error]
	purge   func(ctx context.Context, ids ...string) (*varve.PurgeReport, error)
}

// removable returns the kind of documents that the parameter kind of a request names. The default is memories.
func (r *request) removable() removable {
	st := r.st
	switch r.get("kind") {
	case "note":
		return removable{"note", "note", "notes", "note", "path",
			func(ctx context.Context, id string) (uint64, string, error) {
				n, err := st.Notes().Read(ctx, id)
				if !n.Text {
					n.Content = nil
				}
				return n.Version, human.Head(string(n.Content), listText), err
			}, st.Notes().History, st.Notes().Purge}
	case "assembly":
		return removable{"assembly", "assembly", "assemblies", "assembly", "id",
			func(ctx context.Context, id string) (uint64, string, error) {
				a, err := st.Assemblies().Get(ctx, id)
				return a.Version, human.Head(a.Name+" "+a.Description, listText), err
			}, st.Assemblies().History, st.Assemblies().Purge}
	}
	return removable{"", "memory", "memories", "memory", "id",
		func(ctx context.Context, id string) (uint64, string, error) {
			m, err := st.Get(ctx, id)
			return m.Version, human.Head(m.Content, listText), err
		}, st.History, st.Admin().Purge}
}

// plannedPurge is the template data of the view that asks whether to purge documents.
type plannedPurge struct {
	Kind, One, More string // kind of the documents
	Rows            []plannedRow
	Versions        int
	Assemblies      []varve.Assembly
	Processes       int
	Changed         bool     // a document has changed since the plan was shown
	Unread          []string // errors of data that cannot be read
}

type plannedRow struct {
	ID, Text, Link string
	Version        uint64 // newest version; 0: the document is deleted
	Versions       int
}

// purgePlan shows what a purge would remove, and asks for confirmation. It does not change the store.
func (p *Page) purgePlan(r *request) (*view, error) {
	ids, err := r.ids()
	if err != nil {
		return nil, err
	}
	k := r.removable()
	d := &plannedPurge{Kind: k.kind, One: k.one, More: k.more}
	note := func(err error) {
		if len(d.Unread) < MostRows {
			d.Unread = append(d.Unread, err.Error())
		}
	}
	in := map[string]bool{}
	for _, id := range ids {
		x := plannedRow{ID: id, Link: link(k.view, k.param, id)}
		var text string
		if x.Version, text, err = k.newest(r.ctx, id); err == nil {
			x.Text = shortened(visible(text), listText/2)
		} else if fatal(err) {
			return nil, err
		} else if !errors.Is(err, varve.ErrNotFound) {
			note(err)
		}
		for v, err := range k.history(r.ctx, id) {
			if err == nil && !v.Deleted {
				x.Versions++
			} else if err != nil && !errors.Is(err, varve.ErrNotFound) {
				note(err)
			}
		}
		d.Versions += x.Versions
		d.Rows = append(d.Rows, x)
		if k.kind != "" {
			continue
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
	}
	d.Processes = max(0, len(r.st.Admin().Stats().Processes)-1)
	return &view{template: "purge", title: "Purge", data: d}, nil
}

// ids returns the ids of the documents that a request names, or an error if the request names none, or more than
// mostSelected.
func (r *request) ids() ([]string, error) {
	ids := r.Form["id"]
	if len(ids) == 0 || len(ids) > mostSelected {
		return nil, &refusal{http.StatusBadRequest, count(len(ids), "memory is", "memories are") + " selected",
			"select from 1 to 500 memories in the list; memctl forget and memctl purge accept more"}
	}
	return ids, nil
}

// asPlanned reports whether each document still has the version that the plan showed.
func (r *request) asPlanned(ids []string) bool {
	versions := r.Form["version"]
	if len(versions) != len(ids) {
		return false
	}
	k := r.removable()
	for i, id := range ids {
		version, _, err := k.newest(r.ctx, id)
		if err != nil {
			version = 0
		}
		if versions[i] != strconv.FormatUint(version, 10) {
			return false
		}
	}
	return true
}

// purged is the template data of the result of a purge.
type purged struct {
	Report    *varve.PurgeReport
	One, More string   // kind of the documents
	List      string   // link to the view of the remaining documents
	Left      []string // places where traces may remain
	Notes     []string
}

// purge removes all traces of documents from the store. The person must type the word purge, so that a single click
// cannot purge.
func (p *Page) purge(r *request) (*view, error) {
	ids, err := r.ids()
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(r.get("confirm")) != "purge" {
		return nil, &refusal{http.StatusBadRequest, "nothing was purged: the word purge was not typed as confirmation",
			"go back, and type purge into the field"}
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
	k := r.removable()
	report, err := k.purge(r.ctx, ids...)
	if report == nil {
		return nil, err
	}
	d := &purged{Report: report, One: k.one, More: k.more, List: link("list")}
	if k.kind != "" {
		d.List = link(k.more)
	}
	for _, e := range report.Left {
		d.Left = append(d.Left, e.Error())
	}
	if err != nil && len(d.Left) == 0 {
		d.Left = append(d.Left, err.Error())
	}
	for _, e := range report.Lost {
		d.Notes = append(d.Notes, "lost from the history of other documents: "+e.Error())
	}
	for _, f := range report.Mentions {
		d.Notes = append(d.Notes, "one of your own files contains part of the text: "+visible(f.Path))
	}
	if report.Device != "" {
		d.Notes = append(d.Notes, report.Device)
	}
	for _, b := range report.Backup {
		d.Notes = append(d.Notes, "not purged, because it is a backup or a git repository: "+visible(b))
	}
	if n := len(report.Processes) + len(report.Elsewhere); n > 0 {
		d.Notes = append(d.Notes, count(n, "other process has", "other processes have")+
			" the store open: purged data stays in the memory of a process until the process reads the store again")
	}
	return &view{template: "purged", title: "Purged", data: d}, nil
}
