// Package rows lists the live rows of a words.Set: page by page in an order, or summed up by session.
//
// A page is a merge of one cursor per part. Each cursor starts by binary search after the last place (key, id) of the
// previous page. So the cost of a page depends on the rows that it returns or skips, not on the size of the store, and
// writes do not shift pages: only a document whose own key changes can appear twice or not at all. Dead rows are
// skipped; expired rows are recognised when their document is read.
//
// Sessions are summed up part by part from the columns. The sums of a part are cached with the state of its rows until
// one of them expires. After a write only the parts with changed rows are read again, and the lists of all parts are
// merged.
package rows
