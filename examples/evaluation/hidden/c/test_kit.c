#include <stdio.h>

#include "kit.h"

static int failed = 0;

static void same(const char *name, int got, int want) {
    if (got != want) {
        printf("FAIL %s: got %d, want %d\n", name, got, want);
        failed = 1;
    }
}

int main(void) {
    same("clamp", clamp(-9, -3, 4), -3);
    same("clamp", clamp(0, -3, 4), 0);
    same("clamp", clamp(9, -3, 4), 4);
    same("last_page", last_page(7, 7), 1);
    same("last_page", last_page(8, 7), 2);
    same("last_page", last_page(15, 7), 3);
    same("is_leap", is_leap(1600), 1);
    same("is_leap", is_leap(1700), 0);
    same("is_leap", is_leap(1904), 1);
    same("median3", median3(5, 1, 9), 5);
    same("median3", median3(9, 5, 1), 5);
    same("median3", median3(2, 2, 8), 2);
    same("count_words", count_words(" a "), 1);
    same("count_words", count_words("  a  b c"), 3);
    same("digit_sum", digit_sum(0), 0);
    same("digit_sum", digit_sum(999), 27);
    same("digit_sum", digit_sum(-41), 5);
    same("run_length", run_length("a"), 1);
    same("run_length", run_length("abbaaa"), 3);
    same("overlap", overlap(0, 9, 2, 4), 2);
    same("overlap", overlap(2, 4, 0, 9), 2);
    same("overlap", overlap(0, 2, 2, 4), 0);
    return failed;
}
