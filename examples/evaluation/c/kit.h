int clamp(int value, int low, int high);
int last_page(int total, int size);
int is_leap(int year);
int median3(int a, int b, int c);
int count_words(const char *text);
int digit_sum(int number);
int run_length(const char *text);
int overlap(int a, int b, int c, int d);
