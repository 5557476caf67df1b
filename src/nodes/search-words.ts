/**
 * The words by which a front end's search finds a class, beside its name. Written as one text, since
 * no word has a comma.
 */
const ALIASES: { readonly [className: string]: string } = {
  SaveImage: 'save, save image, export image, output image, write image, download',
  PreviewImage: 'preview, preview image, show image, view image, display image, image viewer',
  LoadImage:
    'load image, open image, import image, image input, upload image, read image, image loader',
  LoadImageMask: 'import mask, alpha mask, channel mask',
  LoadImageOutput: 'output image, previous generation',
  ImageScale: 'resize, resize image, scale image, image resize, zoom, zoom in, change size',
  ImageInvert: 'reverse colors',
  ImageBatch: 'combine images, merge images, stack images',
  ImagePadForOutpaint: 'extend canvas, expand image',
  ImageBlend: 'mix images',
  ImageCompositeMasked: 'overlay, layer, paste image, images composition',
  MaskToImage: 'convert mask',
  ImageToMask: 'extract channel, channel to mask',
  ImageColorToMask: 'color keying, chroma key',
  InvertMask: 'reverse mask, flip mask',
  CropMask: 'cut mask, extract mask region, mask slice',
  MaskComposite: 'combine masks, blend masks, layer masks, masks composition',
  FeatherMask: 'soft edge mask, blur mask edges, gradient mask edge',
  GrowMask: 'expand mask, shrink mask',
  ThresholdMask: 'binary mask',
  MaskPreview: 'show mask, view mask, inspect mask, debug mask',
  SplitImageWithAlpha: 'extract alpha, separate transparency, remove alpha',
  JoinImageWithAlpha: 'add transparency, apply alpha, composite alpha, RGBA',
  ImageCrop: 'trim',
  RepeatImageBatch: 'duplicate image, clone image',
  ImageFromBatch: 'select image, pick from batch, extract image',
  ImageStitch: 'combine images, join images, concatenate images, side by side',
  ResizeAndPadImage: 'fit to size',
  GetImageSize: 'dimensions, resolution, image info',
  ImageRotate: 'turn, flip orientation',
  ImageFlip: 'mirror, reflect',
  PrimitiveString: 'text, string, text box, prompt',
  PrimitiveStringMultiline: 'text, string, text multiline, string multiline, text box, prompt',
  PreviewAny: 'show output, inspect, debug, print value, show text',
  StringConcatenate:
    'concatenate, text concat, join text, merge text, combine strings, string concat, append text, combine text',
  StringSubstring: 'substring, extract text, text portion',
  StringLength: 'character count, text size, string length',
  CaseConverter: 'case converter, text case, uppercase, lowercase, capitalize',
  StringTrim: 'trim, clean whitespace, remove whitespace, remove spaces, strip',
  StringReplace: 'replace, find and replace, substitute, swap text',
  StringContains: 'contains, text includes, string includes',
  StringCompare: 'compare, text match, string equals, starts with, ends with',
  ResizeImageMaskNode:
    'resize, resize image, resize mask, scale, scale image, scale mask, image resize, change size, dimensions, shrink, enlarge',
  BatchImagesNode: 'batch, image batch, batch images, combine images, merge images, stack images',
  BatchMasksNode: 'combine masks, stack masks, merge masks',
  ImageCropV2: 'crop, cut, trim',
  ComfySwitchNode: 'if, then, switch, conditional, branch',
  ComfyAndNode: 'all, every',
  ComfyOrNode: 'any, some',
  ComfyNotNode: 'invert, toggle, negate, flip boolean',
  ComfyNumberConvert:
    'int to float, float to int, number convert, int2float, float2int, cast, parse number, string to number, bool to int',
  ComfyMathExpression: 'expression, formula, calculate, calculator, eval, math',
  StringFormat: 'string, format',
  SaveText: 'save text, write text, export text',
};

/** The classes that a front end shows on its tab Essentials, by the heading there. */
const ESSENTIALS: { readonly [category: string]: readonly string[] } = {
  Basics: ['SaveImage', 'PreviewImage', 'LoadImage', 'LoadImageOutput', 'PrimitiveStringMultiline'],
  'Image Tools': [
    'LoadImageMask',
    'ImageScale',
    'ImageScaleBy',
    'ImageInvert',
    'ImageBlend',
    'ImageCrop',
    'ImageRotate',
    'ImageCropV2',
    'BatchImagesNode',
  ],
};

/** Returns the words by which a search finds a class. */
export function searchAliases(className: string): readonly string[] {
  return ALIASES[className]?.split(', ') ?? [];
}

/** Returns the heading under which a class is on the tab Essentials. */
export function essentialsCategory(className: string): string | undefined {
  return Object.keys(ESSENTIALS).find((category) => ESSENTIALS[category]?.includes(className));
}
