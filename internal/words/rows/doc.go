// Package rows lists the live rows of a words.Set: in an order, page by page, and added up by session.
//
// A page is a merge of one cursor for each part, each of which begins by bisection behind the last
// place, (key, id), of the page before. So a page costs what is on it and what is left out on the way,
// whatever the store has, and does not shift when others write: only a document whose own key has
// changed comes twice or not at all. Dead rows are skipped; whether a row has expired is judged
// when it is read.
//
// Sessions are added up part by part from the columns. The sums of a part are kept with the state of its
// rows, for as long as none of these expires, so that after a write only the parts with changed rows are
// read again, and the lists of all parts are merged.
package rows
