// Package narrow finds the rows of a words.Set among which everything is that some conditions on the
// metadata can hold for, so that only those need be read.
//
// A text that is a value of a member, or begins with it, has all words of that value in the field that the
// member belongs to, whatever the analyzer makes of them: stems, cut words and pairs of characters are the
// same on both sides. So the rows that have these words there are enough; the document still decides.
// Nothing of a member is left out or cut when it is indexed, only words of more than analyzer.MostTerm bytes
// are, and they are cut here as well. A condition does not narrow where
//
//   - its member is of no field, or its value has no word (none at all),
//   - a value that is no text may hold too, since only texts have words (the caller does not give it),
//   - it has very many values, or all words of one are in most rows.
//
// Always among the rows are those without a time, whose documents could not be read when they were indexed,
// and all of the parts that the caller says have no words.
package narrow
