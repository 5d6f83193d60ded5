/* Scores of classes, from a confusion matrix of a log (train/confusion.h). */
#ifndef SL_REPORT_CLASS_SCORES_H
#define SL_REPORT_CLASS_SCORES_H

#include <jansson.h>

/* Of a class. NaN where nothing divides: no vertex of the class, or none predicted. */
struct sl_class_scores {
    double vertices, precision, recall, f1;
};

/* Return the number of vertices of class `label` that were taken for `predicted`. */
double sl_confusion_count(const json_t *rows, size_t label, size_t predicted);

struct sl_class_scores sl_class_scores_of(const json_t *rows, size_t label);

#endif
