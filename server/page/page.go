package page

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/served"
	"github.com/varve-db/varve/server"
)

// MostRows is the maximum number of rows of a list. MostShown is the maximum number of bytes of a text that are
// shown at first. MostEdited is the maximum size in bytes of a text that can be edited.
const (
	MostRows   = 50
	MostShown  = 64 << 10
	MostEdited = 1 << 20
)

// mostBody is the maximum size of a request's body in bytes. mostError is the maximum number of bytes of an error
// in a header.
const (
	mostBody  = 4 * MostEdited
	mostError = 1 << 10
)

// Options are the settings of a Page.
type Options struct {
	Store *served.Store    // store that the page shows; required
	Clock func() time.Time // current time; nil: time.Now
	// Writer describes the writer of changes made on the page; the name of the token is added. The zero Writer
	// has Program "page".
	Writer varve.Writer
	// Embed returns the vectors of texts by the model EmbedModel; nil: searches are by words only.
	Embed      func(ctx context.Context, texts []string) ([][]float32, error)
	EmbedModel string
}

// Page is the http.Handler of the web page on which a person sees and changes a store.
type Page struct {
	o         Options
	mux       *http.ServeMux
	templates *template.Template
	verifying sync.Mutex // held by the one verification that may run
	writable  atomic.Pointer[writable]
	named     atomic.Pointer[named]
}

// named is a store together with its UUID.
type named struct {
	st   *varve.Store
	uuid string
}

// storeHeader is the header in which a view names the UUID of the store that it shows. A request for a change must send
// this header too. If the store was replaced meanwhile, the change is refused, because the person saw another store.
const storeHeader = "Varve-Store"

// unnamed is the error for a request that asks for a change but does not send storeHeader.
var unnamed = &refusal{http.StatusPreconditionRequired, "the request does not name the store to change",
	"load the page again; a program must send the value of the header " + storeHeader + " from the view"}

// uuidOf returns the UUID of a store.
func (p *Page) uuidOf(st *varve.Store) string {
	n := p.named.Load()
	if n == nil || n.st != st {
		n = &named{st, st.Admin().Stats().UUID}
		p.named.Store(n)
	}
	return n.uuid
}

// writable records whether a store could be written, and the time of this check.
type writable struct {
	st  *varve.Store
	yes bool
	at  time.Time
}

// writableFor is the time for which the result of the check in mayBeWritten is used again.
const writableFor = 5 * time.Second

// mayBeWritten reports whether a store can be written. The result may be up to writableFor old.
func (p *Page) mayBeWritten(ctx context.Context, st *varve.Store) bool {
	now := p.o.Clock()
	w := p.writable.Load()
	if w == nil || w.st != st || now.Sub(w.at).Abs() > writableFor {
		w = &writable{st, st.Health(ctx).Writable, now}
		p.writable.Store(w)
	}
	return w.yes
}

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

// New returns the http.Handler of the web page for the store o.Store.
func New(o Options) (*Page, error) {
	if o.Store == nil {
		return nil, fmt.Errorf("%w: a page needs Options.Store", varve.ErrInvalid)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Writer == (varve.Writer{}) {
		o.Writer.Program = "page"
	}
	p := &Page{o: o, mux: http.NewServeMux()}
	var err error
	if p.templates, err = template.New("").Funcs(p.funcs()).ParseFS(templateFiles, "templates/*.html"); err != nil {
		return nil, err
	}
	static, err := fs.Sub(staticFiles, "static")
	if err != nil {
		return nil, err
	}
	files := http.FileServerFS(static)
	p.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, static, "frame.html")
	})
	p.mux.Handle("GET /static/", http.StripPrefix("/static/", files))
	p.mux.HandleFunc("GET /stream", p.stream)
	p.mux.HandleFunc("GET /page/export", p.export)
	for path, h := range map[string]handler{
		"list": p.list, "memory": p.memory, "text": p.text, "edit": p.editForm, "diff": p.diff, "purge": p.purgePlan,
		"health": p.health, "verify": p.verify, "sessions": p.sessions, "log": p.log, "undo": p.undoPlan,
		"writers": p.writers, "quarantine": p.quarantine, "quarantined": p.quarantined, "working": p.working,
		"scope": p.scope, "checkpoint": p.checkpoint, "notes": p.notes, "note": p.note, "note-edit": p.noteEditForm,
		"note-diff": p.noteDiff, "assemblies": p.allAssemblies, "assembly": p.assembly, "graph": p.graph,
		"choices": p.choices,
	} {
		p.mux.HandleFunc("GET /page/"+path, p.answer(h))
	}
	for path, h := range map[string]handler{
		"edit": p.edit, "new": p.create, "forget": p.forget, "undelete": p.undelete, "restore": p.restore,
		"select": p.selected, "purge": p.purge, "undo": p.undo, "forget-session": p.forgetSession,
		"quarantine-restore": p.quarantineRestore, "quarantine-drop": p.quarantineDrop,
		"checkpoint-restore": p.checkpointRestore, "note-edit": p.noteEdit, "note-restore": p.noteRestore,
		"note-forget": p.noteForget, "assembly-forget": p.assemblyForget, "assembly-undelete": p.assemblyUndelete,
		"assembly-restore": p.assemblyRestore,
	} {
		p.mux.HandleFunc("POST /page/"+path, p.answer(h))
	}
	return p, nil
}

// policy is the Content-Security-Policy. It permits only resources of this server, and neither inline scripts nor
// inline styles. Only the script may turn text into HTML: the script has its own Trusted Types policy, view.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; " +
	"trusted-types view"

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, mostBody)
	}
	p.mux.ServeHTTP(w, r)
}

// request is an HTTP request for a view or a change, together with the store and the rights of the token.
type request struct {
	*http.Request
	ctx       context.Context // context that names the writer
	st        *varve.Store
	readOnly  bool // the token only permits reading
	noButtons bool // the token, or the state of the store, does not permit changes
}

// get returns the value of a parameter of the URL or of a field of the posted form.
func (r *request) get(name string) string { return r.FormValue(name) }

// view is the answer to a request. It is either a template with its data, or, if goTo is set, a line that reports what
// was done and the view that the script shows next.
type view struct {
	template string
	title    string
	data     any
	status   int    // HTTP status; 0: 200
	said     string // description of what was done, as a line on the page
	goTo     string // the view that follows, such as #/memory?id=a; the template is not used then
}

// handler returns the view that answers a request.
type handler func(r *request) (*view, error)

// shown is the data that every template gets.
type shown struct {
	Title    string
	ReadOnly bool // nothing can be changed, so that no buttons are shown
	Data     any
}

// request returns hr as a request of the page. The context of the result has the writer of changes: Options.Writer,
// with the name of the token as Token and Agent. If the token does not permit the page, request answers hr with an
// error and returns false.
func (p *Page) request(w http.ResponseWriter, hr *http.Request) (r *request, ok bool) {
	t := server.TokenOf(hr.Context())
	if t == nil || !t.Page {
		http.Error(w, "a token that permits the page is required: make one with memctl serve token add NAME --page",
			http.StatusUnauthorized)
		return nil, false
	}
	by := p.o.Writer
	by.Token = t.Name
	by.Agent = t.Name // a person writes, not the agent of the environment in which the server was started
	return &request{Request: hr, ctx: varve.WithWriter(hr.Context(), by), readOnly: t.ReadOnly,
		noButtons: t.ReadOnly}, true
}

// answer returns the http.HandlerFunc that calls h and writes the resulting view.
func (p *Page) answer(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, hr *http.Request) {
		r, ok := p.request(w, hr)
		if !ok {
			return
		}
		changes := hr.Method != http.MethodGet && hr.Method != http.MethodHead
		var v *view
		other := false
		err := p.use(r.ctx, changes, func(st *varve.Store) (err error) {
			uuid := p.uuidOf(st)
			switch seen := hr.Header.Get(storeHeader); {
			case !changes || seen == uuid:
			case seen == "":
				return unnamed
			default:
				other = true
				return nil
			}
			w.Header().Set(storeHeader, uuid)
			if r.st = st; changes {
				err = r.mayWrite()
			}
			if err == nil && !r.readOnly && !p.mayBeWritten(r.ctx, st) {
				r.noButtons = true
				w.Header().Set("Varve-Read-Only", "1")
			}
			if err == nil {
				err = parse(hr)
			}
			if err == nil {
				v, err = h(r)
			}
			return err
		})
		if other { // use does not get this error: it would exchange the store
			err = fmt.Errorf("%w; nothing was changed: the page showed data of another store", varve.ErrReplaced)
		}
		if err != nil {
			if v = failed(err); changes { // the script shows it beside the form
				w.Header().Set("Varve-Error", errorHeader(v))
			}
		}
		p.write(w, r, v)
	}
}

// use calls f with the store. changes is true if f changes the store. If another store has taken the place of the one
// that the page showed, f is called with the new store only if changes is false. A change is refused, because the
// person saw the old store.
func (p *Page) use(ctx context.Context, changes bool, f func(st *varve.Store) error) error {
	if changes {
		return p.o.Store.Use(ctx, f)
	}
	st, err := p.o.Store.Acquire(ctx)
	if err != nil {
		return err
	}
	defer p.o.Store.Release(st)
	return f(st)
}

// errorHeader returns the message and the advice of the error that a view shows, encoded as the value of an HTTP
// header.
func errorHeader(v *view) string {
	f, _ := v.data.(failure)
	return url.PathEscape(human.Head(visible(f.Message), mostError) + " → " + f.Next)
}

// mayWrite returns an error if the token of the request permits only reading.
func (r *request) mayWrite() error {
	if !r.readOnly {
		return nil
	}
	return &refusal{http.StatusForbidden, "this token permits only reading",
		"make a token that also permits changes: memctl serve token add NAME --page"}
}

// mayEdit returns an error if the token, or the state of the store, does not permit changes. The form to edit a
// document is not shown then.
func (r *request) mayEdit() error {
	if err := r.mayWrite(); err != nil || !r.noButtons {
		return err
	}
	return varve.ErrReadOnly
}

func parse(r *http.Request) error {
	err := r.ParseForm()
	if err == nil {
		err = unescape(r.Form)
	}
	if err == nil {
		return nil
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return &refusal{http.StatusRequestEntityTooLarge, "the request is larger than " + human.Bytes(mostBody),
			"edit the file, or use memctl edit ID"}
	}
	return &refusal{http.StatusBadRequest, "the request cannot be read: " + err.Error(), "go back and try again"}
}

func (p *Page) write(w http.ResponseWriter, r *request, v *view) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	if v.said != "" {
		h.Set("Varve-Said", url.PathEscape(v.said))
	}
	if v.goTo != "" {
		h.Set("Varve-Go", v.goTo)
		w.WriteHeader(http.StatusOK)
		return
	}
	var b bytes.Buffer
	if err := p.templates.ExecuteTemplate(&b, v.template, shown{v.title, r.noButtons, v.data}); err != nil {
		b.Reset()
		v = &view{template: "error", title: "Error", status: http.StatusInternalServerError,
			data: failure{Message: err.Error(), Next: "this is a bug of the page: please report it"}}
		_ = p.templates.ExecuteTemplate(&b, v.template, shown{v.title, true, v.data}) // text only
	}
	h.Set("Varve-Title", url.PathEscape(v.title))
	if v.status != 0 {
		w.WriteHeader(v.status)
	}
	_, _ = w.Write(b.Bytes()) // a client that is gone reads nothing
}

// params returns the query string of a URL. pairs are the names and values of the parameters; empty values are left
// out.
func params(pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q.Encode()
}

// link returns the URL fragment of a view, such as #/memory?id=a. pairs are the names and values of the parameters.
func link(path string, pairs ...string) string {
	if q := params(pairs...); q != "" {
		return "#/" + path + "?" + q
	}
	return "#/" + path
}
