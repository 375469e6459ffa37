package page

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/mcpserver"
	"github.com/varve-db/varve/served"
	"github.com/varve-db/varve/server"
	"github.com/varve-db/varve/server/page"
)

// patience is how long a step in the browser may take on a machine that does much else.
const patience = 30 * time.Second

// lacks skips a test that needs a program, or fails it with VARVE_CI.
func lacks(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("VARVE_CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// site is a store with a server that has the page.
type site struct {
	t    *testing.T
	st   *varve.Store
	addr string
	stop func()
	// embed is the embedder of the page; nil: there is none.
	embed func(context.Context, []string) ([][]float32, error)
	// follows has the server serve the store that is put in the place of the first one, as memctl does.
	follows bool
}

const secret = "browser-secret-of-the-test"

// newSite opens a store and serves it.
func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteIn(t, filepath.Join(t.TempDir(), "s"), varve.Options{})
}

// newSiteIn is newSite with a folder and options.
func newSiteIn(t *testing.T, dir string, o varve.Options) *site {
	t.Helper()
	o.Writer = &varve.Writer{Program: "test", Agent: "coder"}
	st, err := varve.Open(t.Context(), dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, st: st, addr: "127.0.0.1:0", stop: func() {}}
	s.start()
	t.Cleanup(func() {
		s.stop()
		if err := s.st.Close(); err != nil && !errors.Is(err, varve.ErrReplaced) {
			t.Error(err)
		}
	})
	return s
}

// start serves on the address of the site; after a stop on the same one.
func (s *site) start() {
	s.t.Helper()
	tokens, err := server.OpenTokens("", server.Token{Name: "anna", Sum: server.SumOf(secret), Page: true},
		server.Token{Name: "reader", Sum: server.SumOf("reader-" + secret), Page: true, ReadOnly: true})
	if err != nil {
		s.t.Fatal(err)
	}
	held := served.Only(s.st)
	if s.follows {
		dir := s.st.Admin().Stats().Dir
		held = served.New(s.st, served.Options{Open: func(ctx context.Context) (*varve.Store, error) {
			return varve.Open(ctx, dir, &varve.Options{MustExist: true})
		}})
	}
	p, err := page.New(page.Options{Store: held, Embed: s.embed, EmbedModel: "m"})
	if err != nil {
		s.t.Fatal(err)
	}
	web, err := server.New(held, server.Options{Tokens: tokens, Page: p, Drain: time.Millisecond,
		Tools: mcpserver.Options{Groups: mcpserver.DefaultGroups()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	var config net.ListenConfig
	l, err := config.Listen(s.t.Context(), "tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(ctx, l) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
		held.End()
	})
}

// put stores a memory.
func (s *site) put(m varve.Memory) varve.Memory {
	s.t.Helper()
	m, err := s.st.Put(s.t.Context(), m)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// tab is a tab of a browser, with all that went wrong in it.
type tab struct {
	t   *testing.T
	ctx context.Context
	s   *site

	step string // what is being done, for the message of a failure

	mu     sync.Mutex
	wrong  []string // exceptions, messages of the console, dialogs
	others []string // requests to other hosts
	bytes  int
}

// newTab opens a tab with the page, with the token of anna.
func (s *site) newTab() *tab { return s.newTabAs(secret) }

func (s *site) newTabAs(token string) *tab {
	s.t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		lacks(s.t, "chromium is not installed: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1280,
		900),
		chromedp.Flag("disable-background-networking", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	all, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	s.t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(all)
	s.t.Cleanup(cancel)
	b := &tab{t: s.t, ctx: ctx, s: s}
	b.listen()
	b.do(network.Enable(), chromedp.Navigate("http://"+s.addr+"/#token="+token), chromedp.WaitVisible("main .head"))
	return b
}

// second opens another tab of the same browser.
func (b *tab) second() *tab {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.t.Cleanup(cancel)
	c := &tab{t: b.t, ctx: ctx, s: b.s}
	c.listen()
	c.do(network.Enable(), chromedp.Navigate("http://"+b.s.addr+"/#token="+secret),
		chromedp.WaitVisible("main .head"))
	return c
}

func (b *tab) listen() {
	chromedp.ListenTarget(b.ctx, func(e any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			b.wrong = append(b.wrong, e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			b.wrong = append(b.wrong, string(e.Entry.Source)+": "+e.Entry.Text+" "+e.Entry.URL)
		case *cdppage.EventJavascriptDialogOpening:
			b.wrong = append(b.wrong, "dialog: "+e.Message)
		case *network.EventLoadingFinished:
			b.bytes += int(e.EncodedDataLength)
		case *network.EventRequestWillBeSent:
			if u, err := url.Parse(e.Request.URL); err != nil || u.Host != b.s.addr {
				b.others = append(b.others, e.Request.URL)
			}
		case *fetch.EventRequestPaused:
		}
	})
}

// do runs actions, each within patience.
func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	for i, a := range actions {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		if i == 0 &&
			chromedp.FromContext(b.ctx).Target == nil { // the first call starts the browser, which ctx must not end
			cancel()
			ctx, cancel = b.ctx, func() {}
		}
		err := chromedp.Run(ctx, a)
		cancel()
		if err != nil {
			var html string
			if !errors.Is(err, context.Canceled) {
				late, cancel := context.WithTimeout(b.ctx, 5*time.Second)
				_ = chromedp.Run(late, chromedp.Evaluate(`document.body.innerText + '\n' + location.hash + '\nfocus: ' +
					document.activeElement.outerHTML.slice(0, 200)`, &html))
				cancel()
			}
			b.t.Fatalf("%s: action %d: %v; the page has:\n%s\nwrong: %q", b.step, i+1, err, html, b.faults())
		}
	}
}

func (b *tab) faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append(append([]string{}, b.wrong...), b.others...)
}

// sound fails if anything went wrong in the tab, except for faults that contain an expected text.
func (b *tab) sound(expected ...string) {
	b.t.Helper()
next:
	for _, w := range b.faults() {
		for _, e := range expected {
			if strings.Contains(w, e) {
				continue next
			}
		}
		b.t.Errorf("in the browser: %s", w)
	}
}

// open shows a view.
func (b *tab) open(view string) {
	b.t.Helper()
	b.eval(`location.hash = ` + quote("#/"+view))
	b.settled("/page/" + view)
}

// settled waits until a view was loaded.
func (b *tab) settled(string) {
	b.t.Helper()
	b.until(`!document.querySelector('main').hasAttribute('aria-busy') && document.querySelector('main .head') !== null`)
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

// eval evaluates an expression.
func (b *tab) eval(js string) {
	b.t.Helper()
	b.do(chromedp.Evaluate(js, nil))
}

// until waits until an expression is true.
func (b *tab) until(js string) {
	b.t.Helper()
	b.do(chromedp.Poll("(() => { try { return !!("+js+") } catch { return false } })()", nil,
		chromedp.WithPollingInterval(10*time.Millisecond), chromedp.WithPollingTimeout(patience)))
}

// text waits until the page has a text.
func (b *tab) text(want string) {
	b.t.Helper()
	b.until(`document.body.innerText.includes(` + quote(want) + `)`)
}

// click clicks what a selector names.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(selector, chromedp.ByQuery), chromedp.Click(selector, chromedp.ByQuery))
}

// press clicks a button or a link by its text.
func (b *tab) press(label string) {
	b.t.Helper()
	xpath := `//main//*[(self::button or self::a) and normalize-space(.)="` + label + `"]`
	b.do(chromedp.WaitVisible(xpath, chromedp.BySearch), chromedp.Click(xpath, chromedp.BySearch))
}

var _ http.Handler = (*page.Page)(nil)

// awaits has an expression that is a promise be awaited.
func awaits(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
