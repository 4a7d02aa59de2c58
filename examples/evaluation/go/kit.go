// Package kit has eight small functions.
package kit

import (
	"sort"
	"strings"
)

// Clamp returns the value, or the bound that it lies beyond.
func Clamp(value, low, high int) int {
	if value < low {
		return low
	}
	if value > high {
		return high
	}
	return value
}

// LastPage returns the number of the last page, at least 1.
func LastPage(total, size int) int {
	pages := (total + size - 1) / size
	if pages < 1 {
		return 1
	}
	return pages
}

// IsLeap tells whether a year has 366 days.
func IsLeap(year int) bool {
	return year%4 == 0 && (year%100 != 0 || year%400 == 0)
}

// Median returns the value in the middle.
func Median(values []float64) float64 {
	ordered := append([]float64{}, values...)
	sort.Float64s(ordered)
	middle := len(ordered) / 2
	if len(ordered)%2 == 1 {
		return ordered[middle]
	}
	return (ordered[middle-1] + ordered[middle]) / 2
}

// CountWords counts what stands between spaces.
func CountWords(text string) int {
	return len(strings.Fields(text))
}

// DigitSum adds up the digits of a number.
func DigitSum(number int) int {
	if number < 0 {
		number = -number
	}
	total := 0
	for number > 0 {
		total += number % 10
		number /= 10
	}
	return total
}

// RunLength returns the length of the longest run of one byte.
func RunLength(text string) int {
	best, current := 0, 0
	for place := range text {
		if place > 0 && text[place] == text[place-1] {
			current++
		} else {
			current = 1
		}
		if current > best {
			best = current
		}
	}
	return best
}

// Overlap returns how much of the interval a to b lies in c to d.
func Overlap(a, b, c, d int) int {
	low, high := a, b
	if c > low {
		low = c
	}
	if d < high {
		high = d
	}
	if high < low {
		return 0
	}
	return high - low
}
