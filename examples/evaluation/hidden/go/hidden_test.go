package kit

import "testing"

func TestHidden(t *testing.T) {
	same(t, Clamp(-9, -3, 4), -3)
	same(t, Clamp(9, -3, 4), 4)
	same(t, Clamp(0, -3, 4), 0)
	same(t, LastPage(7, 7), 1)
	same(t, LastPage(8, 7), 2)
	same(t, LastPage(15, 7), 3)
	if !IsLeap(1600) || IsLeap(1700) || !IsLeap(1904) || IsLeap(2001) {
		t.Error("wrong year")
	}
	if Median([]float64{7}) != 7 || Median([]float64{1, 2}) != 1.5 || Median([]float64{9, 1, 5, 3}) != 4 {
		t.Error("wrong median")
	}
	same(t, CountWords(" a "), 1)
	same(t, CountWords("  a  b c"), 3)
	same(t, DigitSum(999), 27)
	same(t, DigitSum(-41), 5)
	same(t, RunLength("a"), 1)
	same(t, RunLength("abbaaa"), 3)
	same(t, Overlap(0, 9, 2, 4), 2)
	same(t, Overlap(2, 4, 0, 9), 2)
	same(t, Overlap(0, 2, 2, 4), 0)
}
