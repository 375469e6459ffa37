// Package page serves the web page on which a person sees, searches, corrects and deletes what agents have
// stored. A server serves it at /; memctl ui serves it alone.
//
//	p, err := page.New(page.Options{Store: served.Only(st)})
//	s, err := server.New(st, server.Options{Tokens: tokens, Page: p})
//
// # Parts
//
//	GET /                 the frame: search, navigation, no data
//	GET /static/…         one script, one style sheet, one icon
//	GET /page/…           a view as a piece of HTML, made by html/template
//	POST /page/…          a change; the answer is a view, or says in headers what was done and which view follows
//	GET /stream           a line of JSON for each change, as it happens
//
// The script (static/app.js) puts the view that the fragment of the URL names into the frame: #/memory?id=a is
// /page/memory?id=a. It uses no library. htmx would have more bytes than the whole script, could not send a
// token in a header with its requests for events, and inserts styles into the page that the policy forbids.
//
// # Token
//
// The server checks a token before it calls the handlers of /page/ and /stream. The link to the page has the
// token in the fragment of the URL, which a browser does not send and a server does not log. The script keeps
// it in sessionStorage, removes it from the URL, and sends it as a header. A cookie would be sent to every port
// of 127.0.0.1.
//
// # Invariants
//
//   - The browser sends requests to this server only, and the policy (Content-Security-Policy) permits nothing else: no
//     inline script, no inline style, nothing from elsewhere. The server sends a query to the embedding service if one
//     is set, but not while the query is being typed.
//   - A GET commits nothing. A change is a POST. A token that may only read gets 403, and its views have no buttons.
//   - A change is made in the store that the person saw: views have its UUID in the header Varve-Store, which the
//     script sends with each POST. A POST without it is refused (428).
//   - A refused POST leaves the form in place: the header Varve-Error has the reason.
//   - A request whose context has no token for the page gets 401.
//   - Text of the store is escaped by html/template. The Markdown of a note is rendered by goldmark; HTML in it is
//     shown as text, images are links, and a link to another site shows its target and asks before it is followed.
//   - An edit names the version that was read. If the memory has changed since, nothing is written, and the answer
//     shows both texts.
//   - A view of any store is bounded: MostRows rows, MostShown bytes of a text.
package page
