package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/repair"
)

// shownHealth is the template data of the view of the store's health.
type shownHealth struct {
	OK       bool
	Problems []string
	Facts    []fact
	Refused  []fact // edits by hand that cannot be adopted, with the reason
	Aside    int    // number of files in quarantine/
}

func (p *Page) health(r *request) (*view, error) {
	h, n := r.st.Health(r.ctx), r.st.Admin().Stats()
	d := &shownHealth{OK: h.OK}
	for _, err := range h.Problems {
		d.Problems = append(d.Problems, err.Error())
	}
	add := func(name, value string) {
		if value != "" {
			d.Facts = append(d.Facts, fact{Name: name, Value: visible(value)})
		}
	}
	add("store", n.Dir)
	u, err := r.st.Admin().Usage(r.ctx)
	if err != nil {
		u.Memories = n.Memories
		d.Problems = append(d.Problems, err.Error())
	}
	expired := ""
	if u.Expired > 0 {
		expired = ", " + count(u.Expired, "of them expired", "of them expired")
	}
	add("memories", count(n.Memories, "memory", "memories")+", "+human.Bytes(u.Bytes)+expired)
	add("assemblies", count(n.Assemblies, "assembly", "assemblies"))
	if n.Vectors > 0 {
		model := n.Model
		if model == "" {
			model = "an unknown model"
		}
		add("vectors", count(n.Vectors, "vector", "vectors")+" of "+human.Count(n.Dimension, "dimension",
			"dimensions")+", by "+
			model)
	}
	if h.Pending > 0 {
		add("embedder", count(h.Pending, "memory waits", "memories wait")+" for an embedding")
	}
	if h.Slowed != "" {
		add("slowed", "writers wait: "+h.Slowed)
	}
	if h.ReadOnly != nil {
		add("read-only", h.ReadOnly.Error())
	} else if !h.Writable {
		add("read-only", "the store cannot be written now")
	}
	if h.SettingsUnknown {
		add("settings",
			"config.json is invalid: until it is corrected, no history is removed, no memory is evicted or deleted "+
				"because of its age, and a memory is not deleted when its file is missing")
	}
	add("log", human.Bytes(n.Backlog)+" to read at the next open; "+human.Bytes(n.Unflushed)+
		" of the log are not yet in the files of documents")
	add("history", human.Bytes(n.HistoryBytes)+" in addition to the log")
	when := func(name string, t time.Time) {
		if !t.IsZero() {
			d.Facts = append(d.Facts, fact{Name: name, Time: t})
		}
	}
	when("history since", n.HistorySince)
	when("last flush", n.LastFlush)
	if s := h.Space; s.Total > 0 {
		add("disk", human.Bytes(s.Free)+" free of "+human.Bytes(s.Total))
	}
	add("processes", human.Count(len(n.Processes)+len(n.Elsewhere), "process has",
		"processes have")+" the store open")
	if h.Copy.Follows {
		add("copy elsewhere", human.Bytes(h.Copy.Behind)+" behind")
	}
	for e, err := range r.st.Admin().RefusedEdits(r.ctx) {
		if err != nil || len(d.Refused) == MostRows {
			break
		}
		d.Refused = append(d.Refused, fact{Name: visible(e.Path), Value: e.Err.Error()})
	}
	d.Aside, _ = r.st.Admin().Quarantine().Count() // the view of quarantine/ shows the error
	return &view{template: "health", title: "Health", data: d}, nil
}

// verified is the template data of the result of a verification.
type verified struct {
	Findings []finding
	More     bool // the verification found more than is shown
	Worst    string
	Read     string
	Problem  string // reason why the verification ended early
	Sound    bool
}

type finding struct {
	Kind, Severity, Where, ID, Stake, Heals, Next, Why string
}

// verify verifies the whole store, as memctl verify does, and shows the result. It does not change the store.
func (p *Page) verify(r *request) (*view, error) {
	if !p.verifying.TryLock() {
		return nil, &refusal{http.StatusConflict, "another verification is running",
			"wait until the other verification has ended"}
	}
	defer p.verifying.Unlock()
	d, s := &verified{}, repair.Summary{}
	for f, err := range r.st.Admin().Verify(r.ctx, repair.VerifyOptions{Summary: &s}) {
		if err != nil {
			if fatal(err) {
				return nil, err
			}
			d.Problem = err.Error()
			if r.ctx.Err() != nil {
				d.Problem = "the verification exceeded the time limit of a request: use memctl verify, which has no " +
					"time limit"
			}
			break
		}
		if d.More = len(d.Findings) >= 4*MostRows; d.More {
			continue
		}
		x := finding{Kind: string(f.Kind), Severity: f.Severity.String(), Where: visible(f.Path), ID: f.ID,
			Stake: f.Stake,
			Heals: f.Heals, Next: f.Next}
		if f.Err != nil {
			x.Why = visible(f.Err.Error())
		}
		d.Findings = append(d.Findings, x)
	}
	d.Worst, d.Sound = s.Worst.String(), d.Problem == "" && s.Worst == repair.Info
	d.Read = strings.Join([]string{count(s.Memories, "memory", "memories"), count(s.Assemblies, "assembly",
		"assemblies"),
		count(s.Vectors, "vector", "vectors"), count(s.Files, "file", "files"),
		count(s.Entries, "entry", "entries") + " of the log", human.Bytes(s.Bytes)}, ", ")
	return &view{template: "verify", title: "Verify", data: d}, nil
}

// shownSessions is the template data of the list of sessions.
type shownSessions struct {
	Sessions []varve.Session
	More     bool
}

func (p *Page) sessions(r *request) (*view, error) {
	d := &shownSessions{}
	all, err := p.newestSessions(r)
	if err != nil {
		return nil, err
	}
	if d.More = len(all) > 4*MostRows; d.More {
		all = all[:4*MostRows]
	}
	d.Sessions = all
	return &view{template: "sessions", title: "Sessions", data: d}, nil
}

func (p *Page) forgetSession(r *request) (*view, error) {
	id := r.get("session")
	if id == "" {
		return nil, &refusal{http.StatusBadRequest, "the form does not have the id of a session",
			"open the list of sessions again"}
	}
	n, err := r.st.Sessions().Delete(r.ctx, id)
	if err != nil && n > 0 { // a large session is deleted in several commits
		err = fmt.Errorf("forgot %s of the session, but not the other memories: %w",
			count(n, "memory", "memories"), err)
	}
	if err != nil {
		return nil, err
	}
	return &view{said: "Forgot " + count(n, "memory", "memories") + " of the session; you can undo this in the log",
		goTo: link("log")}, nil
}

// shownAside is the template data of the list of files in quarantine/.
type shownAside struct {
	Rows   []varve.Quarantined
	Unread []string
	More   bool
}

func (p *Page) quarantine(r *request) (*view, error) {
	d := &shownAside{}
	for q, err := range r.st.Admin().Quarantine().All(r.ctx) {
		if err != nil {
			if fatal(err) {
				return nil, err
			}
			d.Unread = append(d.Unread, err.Error())
			if len(d.Unread) > MostRows {
				break
			}
			continue
		}
		if d.More = len(d.Rows) == 4*MostRows; d.More {
			break
		}
		d.Rows = append(d.Rows, q)
	}
	return &view{template: "quarantine", title: "Quarantine", data: d}, nil
}

// shownFile is the template data of one file in quarantine/.
type shownFile struct {
	varve.Quarantined
	Text   string
	Cut    bool
	Binary bool
	Drop   bool // show the question whether to remove the file
	// Restorable reports whether the file may be a document that Restore accepts; only Restore itself can tell for
	// certain.
	Restorable bool
}

func (p *Page) quarantined(r *request) (*view, error) {
	q := r.st.Admin().Quarantine()
	info, err := q.Get(r.ctx, r.get("name"))
	if err != nil {
		return nil, err
	}
	d := &shownFile{Quarantined: info, Drop: r.get("drop") != ""}
	if info.What == varve.QuarantinedFile {
		w := &beginning{most: MostShown}
		_, err := q.Copy(r.ctx, info.Name, w)
		if err != nil && !errors.Is(err, errEnough) {
			return nil, err
		}
		d.Text, d.Cut, d.Binary = visible(string(w.b)), w.cut, strings.ContainsRune(string(w.b), 0)
		d.Restorable = !d.Binary && (info.ID != "" || d.Cut || json.Valid(w.b))
	}
	return &view{template: "quarantined", title: shortened(visible(info.Name), 60), data: d}, nil
}

var errEnough = errors.New("the file has more data than the page shows")

// beginning is a writer that keeps only the beginning of the data that is written to it, at most most bytes. Write
// returns errEnough if the data is longer.
type beginning struct {
	b    []byte
	most int
	cut  bool
}

func (w *beginning) Write(b []byte) (int, error) {
	if room := w.most - len(w.b); len(b) > room {
		w.b, w.cut = append(w.b, b[:room]...), true
		return room, errEnough
	}
	w.b = append(w.b, b...)
	return len(b), nil
}

func (p *Page) quarantineRestore(r *request) (*view, error) {
	d, err := r.st.Admin().Quarantine().Restore(r.ctx, r.get("name"))
	if err != nil {
		return nil, err
	}
	to := "memory"
	if d.Assembly {
		to = "assembly"
	}
	return &view{said: "Restored as a new version; the file stays in quarantine", goTo: link(to, "id", d.ID)}, nil
}

// quarantineDrop permanently removes a file from quarantine/. The person must type the word drop to confirm this.
func (p *Page) quarantineDrop(r *request) (*view, error) {
	if strings.TrimSpace(r.get("confirm")) != "drop" {
		return nil, &refusal{http.StatusBadRequest, "nothing was dropped: the word drop was not typed as confirmation",
			"type drop into the field"}
	}
	if _, err := r.st.Admin().Quarantine().Drop(r.ctx, r.get("name")); err != nil {
		return nil, err
	}
	return &view{said: "Dropped", goTo: link("quarantine")}, nil
}
